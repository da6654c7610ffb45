#pragma once

// What is wrong with a command line.

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

/// At the end of the description of an option that takes times.
inline constexpr const char* kUnits = " (or 500ms, 2m)";

/// `; did you mean --http?`, or nothing if no candidate is near.
std::string Suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// What is wrong with the command line, in our words where CLI11's would not be clear, and
/// where to read more.
std::string Complaint(const CLI::App& program, const std::vector<std::string>& words,
                      const CLI::ParseError& error);

}  // namespace weir::app
