#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "policy/fields.h"
#include "telemetry/version.h"

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

/// How CLI11 begins when the text of an option is no number.
constexpr std::string_view kNoConversion = "Could not convert: ";

/// `; did you mean --http?`, or nothing if no candidate is near.
std::string Suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  const auto nearest = policy::yaml::Nearest(word, views);
  return nearest ? "; did you mean " + std::string(*nearest) + "?" : std::string();
}

std::string UnknownOption(const CLI::App& app, const std::string& option) {
  std::vector<std::string> known;
  for (const CLI::Option* one : app.get_options()) {
    for (const std::string& name : one->get_lnames()) known.push_back("--" + name);
  }
  return option + ": no such option" + Suggestion(option, known);
}

std::string UnknownCommand(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* one : app.get_subcommands({})) known.push_back(one->get_name());
  return word + ": no such command" + Suggestion(word, known);
}

const CLI::App* Subcommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* one : app.get_subcommands({})) {
    if (one->get_name() == name) return one;
  }
  return nullptr;
}

/// The command that the words name, as far as there is one, and the first word that nobody knows.
struct Reading {
  const CLI::App* app;
  std::string path;
  std::string unknown;
};

Reading Read(const CLI::App& program, const std::vector<std::string>& words) {
  Reading read{&program, program.get_name(), ""};
  for (const std::string& word : words) {
    const std::string option = word.substr(0, word.find('='));
    if (option.starts_with("--")) {
      if (read.app->get_option_no_throw(option) != nullptr) continue;
      read.unknown = UnknownOption(*read.app, option);
      break;
    }
    if (word.starts_with('-') || read.app->get_require_subcommand_min() == 0) continue;
    const CLI::App* next = Subcommand(*read.app, word);
    if (next == nullptr) {
      read.unknown = UnknownCommand(*read.app, word);
      break;
    }
    read.app = next;
    read.path += " " + word;
  }
  return read;
}

/// What is wrong with the command line, in our words where CLI11's would leave one guessing, and
/// where to read on.
std::string Complaint(const CLI::App& program, const std::vector<std::string>& words,
                      const CLI::ParseError& error) {
  const Reading read = Read(program, words);
  std::string wrong = error.what();
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if ((extra || missing) && !read.unknown.empty()) {
    wrong = read.unknown;
  } else if (missing && read.app->get_require_subcommand_min() > 0) {
    wrong = "a subcommand is required";
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string option = wrong.substr(0, wrong.find(':'));
    if (const CLI::Option* known = read.app->get_option_no_throw(option)) {
      wrong = option + ": needs a value: " + known->get_description();
    }
  } else if (wrong.starts_with(kNoConversion) && wrong.find(" = ") != std::string::npos) {
    const std::size_t equals = wrong.find(" = ");
    wrong = wrong.substr(kNoConversion.size(), equals - kNoConversion.size()) +
            ": expected a number, got '" + wrong.substr(equals + 3) + "'";
  }
  return "weir: " + wrong + "\nsee `" + read.path + " --help`\n";
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
    program.set_version_flag("--version", "weir " + std::string(weir::telemetry::kVersion));
    int exit_code = 0;
    for (const weir::app::Command* command : weir::app::Command::All()) {
      command->Add(program, exit_code);
    }
    program.footer(weir::app::kFooter);  // last, or every command would have it too
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    try {
      // The last one first, as CLI11 wants them.
      weir::app::HideSecrets(argc, argv);
      program.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError& error) {
      // --help and --version end here as well.
      if (error.get_exit_code() == 0) return program.exit(error);
      std::cerr << weir::app::Complaint(program, words, error);
      return kUsage;
    }
    return exit_code;
  } catch (const std::exception& error) {
    std::cerr << "weir: " << error.what() << '\n';
    return 1;
  }
}
