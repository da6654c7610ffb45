#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"

namespace weir::app {
namespace {

std::vector<const Command*>& Commands() {
  static std::vector<const Command*> commands;
  return commands;
}

constexpr const char* kFooter = R"(Start here:
  weir serve                         the rate-limit service, with no configuration at all
  curl -s localhost:8080/v1/check -d '{"key":"user-123"}'
  weir COMMAND --help                everything about one command
)";

/// Takes secrets out of what other users of the machine see of this process. What they could see
/// before this ran they may have seen; files and the environment are better places.
void HideSecrets(int argc, char** argv) {
  bool hide = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    for (const std::string_view option : {"--key", "--admin-key"}) {
      if (word.starts_with(option) && word.substr(option.size()).starts_with('=')) {
        std::fill(argv[i] + option.size() + 1, argv[i] + word.size(), 'x');
      }
    }
    if (hide) std::fill(argv[i], argv[i] + word.size(), 'x');
    hide = word == "--key" || word == "--admin-key";
  }
}

/// One line for each option: its name, what it takes, what it is without it; then what it means.
///
/// Not thread-safe.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(35); }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const std::string takes = option->get_type_name();
    std::string out = " " + takes.substr(0, takes.find(':'));
    if (!option->get_default_str().empty()) out += "=" + option->get_default_str();
    return out;
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string out = option->get_description();
    if (option->get_required() && !option->get_positional()) out += " Required.";
    if (!option->get_envname().empty()) out += " [" + option->get_envname() + "]";
    return out;
  }
};

}  // namespace

Command::Command(const char* name, const char* description, Configure configure)
    : name_(name), description_(description), configure_(configure) {
  Commands().push_back(this);
}

void Command::Add(CLI::App& program, int& exit_code) const {
  CLI::App* word = program.add_subcommand(name_, description_);
  configure_(*word, exit_code);
}

std::vector<const Command*> Command::All() {
  std::vector<const Command*> commands = Commands();
  std::sort(commands.begin(), commands.end(), [](const Command* a, const Command* b) {
    return std::string_view(a->name()) < b->name();
  });
  return commands;
}

}  // namespace weir::app

int main(int argc, char** argv) {
  try {
    constexpr int kUsage = 2;
    CLI::App program("Weir: flow control. Rate limits, slots and capped notifications.", "weir");
    program.formatter(std::make_shared<weir::app::HelpFormatter>());
    program.require_subcommand(1);
    int exit_code = 0;
    for (const weir::app::Command* command : weir::app::Command::All()) {
      command->Add(program, exit_code);
    }
    program.footer(weir::app::kFooter);  // last, or every command would have it too
    try {
      // The last one first, as CLI11 wants them.
      std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
      std::reverse(words.begin(), words.end());
      weir::app::HideSecrets(argc, argv);
      program.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
      // --help and --version end here as well.
      return program.exit(error) == 0 ? 0 : kUsage;
    }
    return exit_code;
  } catch (const std::exception& error) {
    std::cerr << "weir: " << error.what() << '\n';
    return 1;
  }
}
