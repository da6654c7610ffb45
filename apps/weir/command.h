#pragma once

// The words of the command line. A file <word>_command.cc defines a static Command, and that is all
// it takes to add one.

#include <CLI/CLI.hpp>
#include <vector>

namespace weir::app {

/// One subcommand: `weir serve`.
///
/// Thread safety: made before main begins, read-only afterwards.
class Command {
 public:
  /// Adds options to `word` and sets its callback, which leaves the program's exit code in
  /// `exit_code`.
  using Configure = void (*)(CLI::App& word, int& exit_code);

  Command(const char* name, const char* description, Configure configure);

  const char* name() const noexcept { return name_; }
  const char* description() const noexcept { return description_; }
  void Add(CLI::App& program, int& exit_code) const;

  /// All of them, in alphabetical order.
  static std::vector<const Command*> All();

 private:
  const char* name_;
  const char* description_;
  Configure configure_;
};

}  // namespace weir::app
