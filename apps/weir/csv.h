#pragma once

// CSV as in RFC 4180, a row to a line, read strictly: files of payments and caps come from programs
// that quote in their own ways, and a row that is taken for another must not pass.

#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::app {

/// The fields of one line. An error if a quote stands where it would be lost.
Result<std::vector<std::string>> SplitCsv(std::string_view line);
/// Appends `text`, quoted if it must be.
void AppendCsv(std::string& out, const std::string& text);
/// The first line of a file without the mark that spreadsheets write before it.
std::string_view WithoutMark(std::string_view line);

}  // namespace weir::app
