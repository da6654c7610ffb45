#pragma once

// How commands describe their command line. CLI11 parses it, and only syntax.cc includes CLI11: it
// is all templates, and takes as long to compile as thirty commands together.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weir::app {

/// One option, flag or positional argument of a command. A handle: copies refer to the same one.
///
/// Not thread-safe.
class Option {
 public:
  explicit Option(CLI::Option* option) noexcept : option_(option) {}

  Option Required();
  /// Shows its present value as the default in the help text.
  Option ShowDefault();
  /// The environment variable that sets it if the command line does not.
  Option Env(const char* variable);
  Option Between(int least, int most);
  Option Between(std::int64_t least, std::int64_t most);
  Option Between(std::uint64_t least, std::uint64_t most);
  Option Between(double least, double most);
  Option OneOf(std::vector<std::string> values);
  Option ExistingFile();
  /// It counts seconds, but `500ms`, `1m30s` and `PT90S` are accepted, too.
  Option AllowUnits();
  Option Needs(Option other);
  Option Excludes(Option other);
  /// How many values follow the name.
  Option Values(int least, int most);
  /// Each value of a list is preceded by the name: --tenant a=1 --tenant b=2.
  Option OneValueEach();
  /// If it is given several times, it keeps all values.
  Option TakeAll();
  Option Delimiter(char separator);
  Option TypeName(std::string name);
  Option DefaultText(std::string text);
  /// Accepted, but not shown in the help text.
  Option Hidden();
  bool given() const;

 private:
  CLI::Option* option_;
};

/// One command: its options and subcommands. A handle: copies refer to the same command.
///
/// Not thread-safe.
class Syntax {
 public:
  using OnValues = std::function<void(const std::vector<std::string>&)>;

  explicit Syntax(CLI::App* app) noexcept : app_(app) {}

  /// `value` must live until the command has run. Names: "--url", "-d,--seconds", or "KEY" for a
  /// positional argument.
  Option AddOption(std::string name, std::string& value, std::string help = "");
  Option AddOption(std::string name, int& value, std::string help = "");
  Option AddOption(std::string name, std::int64_t& value, std::string help = "");
  Option AddOption(std::string name, std::uint64_t& value, std::string help = "");
  Option AddOption(std::string name, double& value, std::string help = "");
  Option AddOption(std::string name, std::optional<std::int64_t>& value, std::string help = "");
  Option AddOption(std::string name, std::vector<std::string>& values, std::string help = "");
  Option AddOption(std::string name, std::vector<std::int64_t>& values, std::string help = "");
  /// Calls `on_values` with the values instead of keeping them.
  Option AddOption(std::string name, const OnValues& on_values, std::string help = "");
  Option AddFlag(std::string name, bool& value, std::string help = "");

  Syntax AddSubcommand(std::string name, std::string about);
  void RequireSubcommand();
  void Footer(std::string text);
  /// What the command does; returns the program's exit code. Runs after the command line has been
  /// parsed.
  void OnRun(std::function<int()> run);

  /// Aborts parsing: `argument` is required and missing.
  [[noreturn]] static void Missing(const std::string& argument);

  std::string name() const;
  std::string about() const;
  Syntax parent() const;
  std::vector<Syntax> subcommands() const;
  /// The long names of its options, "--url", each with its help text.
  std::vector<std::pair<std::string, std::string>> options() const;

 private:
  CLI::App* app_;
};

}  // namespace weir::app
