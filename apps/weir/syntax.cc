#include "syntax.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string_view>

#include "base/duration.h"
#include "command.h"
#include "complaint.h"
#include "range_words.h"
#include "telemetry/version.h"

namespace weir::app {
namespace {

constexpr const char* kFooter =
    R"(Start with `weir serve`, then: curl -s localhost:8080/v1/check -d '{"key":"user-123"}'
For completion in your shell: `weir completion --help`)";

/// The commands in the order of the help: what a newcomer needs first comes first.
struct Group {
  const char* title;
  std::vector<std::string_view> commands;
};

const std::vector<Group>& Groups() {
  static const std::vector<Group> groups = {
      {"Run", {"serve", "proxy", "sender", "dispatch", "migrate", "restore", "healthcheck"}},
      {"Use a running service",
       {"check", "explain", "policy", "top", "keys", "status", "reset", "audit", "reserve",
        "settle", "slots", "notify"}},
      {"Try before you enforce", {"config", "replay", "simulate", "bench"}},
      {"", {"completion", "version"}},  // not listed: the footer and --version say enough
  };
  return groups;
}

/// The exit code of the one command that this process runs.
int exit_code = 0;

/// Adds all commands, group by group; those in no group come last.
void AddCommands(CLI::App& program) {
  std::vector<const Command*> rest = Command::All();
  for (const Group& group : Groups()) {
    for (const std::string_view name : group.commands) {
      const auto found = std::find_if(rest.begin(), rest.end(),
                                      [name](const Command* one) { return one->name() == name; });
      if (found == rest.end()) continue;
      (*found)->Add(Syntax(&program));
      program.get_subcommand(std::string(name))->group(group.title);
      rest.erase(found);
    }
  }
  for (const Command* command : rest) command->Add(Syntax(&program));
}

/// The group of options that the help does not show. Not CLI11's own for that, "": errors would not
/// name them.
constexpr const char* kHidden = "hidden";

/// One line for each option: its name, its argument, its default; then its meaning.
///
/// Not thread-safe.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(35); }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const std::string takes = option->get_type_name();
    std::string out = " " + takes.substr(0, takes.find(':'));
    if (option->get_expected_min() == 0 && !takes.empty()) return " [" + out.substr(1) + "]";
    if (!option->get_default_str().empty()) out += "=" + option->get_default_str();
    return out;
  }

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (group == kHidden) return "";
    return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
  }

  std::string make_option_usage(const CLI::Option* option) const override {
    std::string out = make_option_name(option, true);
    if (option->get_expected_max() > 1) out += "...";
    return option->get_required() ? out : "[" + out + "]";
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string out = option->get_description();
    if (option->get_required() && !option->get_positional()) out += " (required)";
    if (!option->get_envname().empty()) out += " [" + option->get_envname() + "]";
    return out;
  }
};

}  // namespace

Option Option::Required() { return Option(option_->required()); }
Option Option::ShowDefault() { return Option(option_->capture_default_str()); }
Option Option::Env(const char* variable) { return Option(option_->envname(variable)); }
Option Option::Between(int least, int most) {
  return Option(option_->check(CLI::Range(least, most)));
}
Option Option::Between(std::int64_t least, std::int64_t most) {
  return Option(option_->check(CLI::Range(least, most)));
}
Option Option::Between(std::uint64_t least, std::uint64_t most) {
  return Option(option_->check(CLI::Range(least, most)));
}
Option Option::Between(double least, double most) {
  // Not CLI::Range: nan is neither below nor above a bound, and so passes it.
  return Option(option_->check([least, most](const std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return {};
    return "Value " + text + " not in range " + std::to_string(least) + " to " +
           std::to_string(most);
  }));
}
Option Option::OneOf(std::vector<std::string> values) {
  return Option(option_->check([values = std::move(values)](const std::string& text) {
    if (std::ranges::find(values, text) != values.end()) return std::string();
    std::string all;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) all += i + 1 == values.size() ? " or " : ", ";
      all += values[i];
    }
    return "expected " + all + ", got '" + text + "'" + Suggestion(text, values);
  }));
}
Option Option::ExistingFile() { return Option(option_->check(CLI::ExistingFile)); }
Option Option::AllowUnits() {
  option_->description(option_->get_description() + kUnits);
  return Option(option_->transform([](std::string text) {
    const Result<std::chrono::nanoseconds> time = ParseDuration(text);
    if (!time.ok()) return text;
    return WithoutZeros(std::to_string(std::chrono::duration<double>(*time).count()));
  }));
}
Option Option::Needs(Option other) { return Option(option_->needs(other.option_)); }
Option Option::Excludes(Option other) { return Option(option_->excludes(other.option_)); }
Option Option::Values(int least, int most) { return Option(option_->expected(least, most)); }
Option Option::OneValueEach() { return Option(option_->expected(1)->allow_extra_args(false)); }
Option Option::TakeAll() { return Option(option_->take_all()); }
Option Option::Delimiter(char separator) { return Option(option_->delimiter(separator)); }
Option Option::TypeName(std::string name) { return Option(option_->type_name(std::move(name))); }
Option Option::DefaultText(std::string text) {
  return Option(option_->default_str(std::move(text)));
}
Option Option::Hidden() { return Option(option_->group(kHidden)); }
bool Option::given() const { return option_->count() > 0; }

Option Syntax::AddOption(std::string name, std::string& value, std::string help) {
  return Option(app_->add_option(std::move(name), value, std::move(help)));
}
Option Syntax::AddOption(std::string name, int& value, std::string help) {
  return Option(app_->add_option(std::move(name), value, std::move(help)));
}
Option Syntax::AddOption(std::string name, std::int64_t& value, std::string help) {
  return Option(app_->add_option(std::move(name), value, std::move(help)));
}
Option Syntax::AddOption(std::string name, std::uint64_t& value, std::string help) {
  return Option(app_->add_option(std::move(name), value, std::move(help)));
}
Option Syntax::AddOption(std::string name, double& value, std::string help) {
  return Option(app_->add_option(std::move(name), value, std::move(help)));
}
Option Syntax::AddOption(std::string name, std::optional<std::int64_t>& value, std::string help) {
  return Option(app_->add_option(std::move(name), value, std::move(help)));
}
Option Syntax::AddOption(std::string name, std::vector<std::int64_t>& values, std::string help) {
  return Option(app_->add_option(std::move(name), values, std::move(help)));
}
Option Syntax::AddOption(std::string name, std::vector<std::string>& values, std::string help) {
  return Option(app_->add_option(std::move(name), values, std::move(help)));
}
Option Syntax::AddOption(std::string name, const OnValues& on_values, std::string help) {
  return Option(app_->add_option_function(std::move(name), on_values, std::move(help)));
}
Option Syntax::AddFlag(std::string name, bool& value, std::string help) {
  return Option(app_->add_flag(std::move(name), value, std::move(help)));
}

Syntax Syntax::AddSubcommand(std::string name, std::string about) {
  return Syntax(app_->add_subcommand(std::move(name), std::move(about)));
}
void Syntax::RequireSubcommand() { app_->require_subcommand(1); }
void Syntax::Footer(std::string text) { app_->footer(std::move(text)); }
void Syntax::OnRun(std::function<int()> run) {
  app_->callback([run = std::move(run)] { exit_code = run(); });
}
void Syntax::Missing(const std::string& argument) { throw CLI::RequiredError(argument); }

std::string Syntax::name() const { return app_->get_name(); }
std::string Syntax::about() const { return app_->get_description(); }
Syntax Syntax::parent() const { return Syntax(app_->get_parent()); }

std::vector<Syntax> Syntax::subcommands() const {
  std::vector<Syntax> all;
  for (CLI::App* one : app_->get_subcommands([](CLI::App*) { return true; })) all.emplace_back(one);
  return all;
}

std::vector<std::pair<std::string, std::string>> Syntax::options() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    for (const std::string& name : option->get_lnames()) {
      all.emplace_back("--" + name, option->get_description());
    }
  }
  return all;
}

int Command::Run(std::vector<std::string> words) {
  constexpr int kUsage = 2;
  CLI::App program("Weir: an exact rate limiter that many nodes can share.", "weir");
  program.formatter(std::make_shared<HelpFormatter>());
  program.require_subcommand(1);
  program.set_version_flag("--version", "weir " + std::string(telemetry::kVersion));
  AddCommands(program);
  program.footer(kFooter);  // last, or every command would have it too
  try {
    // In reverse order, as CLI11 expects them.
    program.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    // --help and --version also get here.
    if (error.get_exit_code() == 0) return program.exit(error);
    std::cerr << Complaint(program, words, error);
    return kUsage;
  }
  return exit_code;
}

}  // namespace weir::app
