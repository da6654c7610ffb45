#pragma once

// The words of the command line. A file <word>_command.cc defines a static Command, and that is all
// it takes to add one.

#include <string>
#include <vector>

#include "syntax.h"
#include "weir/result.h"

namespace weir::app {

/// The exit code of a program that did not start: 2 if the command line, a setting or a file is
/// wrong, so that starting it again will not help; else 1.
inline int StartFailure(const Error& error) noexcept {
  return error.code == Code::kInvalidArgument ? 2 : 1;
}

/// One subcommand: `weir serve`.
///
/// Thread safety: made before main begins, read-only afterwards.
class Command {
 public:
  /// Adds options to `word` and describes it.
  using Configure = void (*)(Syntax word);

  Command(const char* name, const char* description, Configure configure);

  const char* name() const noexcept { return name_; }
  const char* description() const noexcept { return description_; }
  void Add(Syntax program) const;

  /// All commands, in alphabetical order.
  static std::vector<const Command*> All();

  /// Parses the command line and runs the command that it names; returns the exit code.
  static int Run(std::vector<std::string> words);

 private:
  const char* name_;
  const char* description_;
  Configure configure_;
};

}  // namespace weir::app
