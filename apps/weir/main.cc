#include <algorithm>
#include <exception>
#include <iostream>
#include <string_view>

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
    program.footer(weir::app::kFooter);
    program.require_subcommand(1);
    int exit_code = 0;
    for (const weir::app::Command* command : weir::app::Command::All()) {
      command->Add(program, exit_code);
    }
    try {
      program.parse(argc, argv);
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
