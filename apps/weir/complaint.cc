#include "complaint.h"

#include "base/nearest.h"
#include "range_words.h"

namespace weir::app {
namespace {

/// How CLI11 begins when the value of an option is not a number.
constexpr std::string_view kNoConversion = "Could not convert: ";

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

/// The command that the words name, as far as it exists, and the first unknown word.
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

/// Where numbers of this kind are listed, if the option says it: "ID of the change; see weir
/// audit".
std::string WhereToFind(const CLI::App& app, const std::string& name, const std::string& value) {
  const CLI::Option* option = app.get_option_no_throw(name);
  const std::string about = option == nullptr ? "" : option->get_description();
  const std::size_t see = about.find("; see ");
  if (see == std::string::npos) return "";
  const std::string list = about.substr(see + 6);
  const bool by_name = list == "weir audit" && !value.empty();
  return "; see `" + list + (by_name ? " " + value : "") + "`";
}

/// What an option with bounds expects.
std::string ExpectedBy(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  const bool units = option != nullptr && option->get_description().ends_with(kUnits);
  return units ? "a time such as 500ms or 2m, or seconds" : "a number";
}

std::string AtMost(int values) {
  if (values == 1) return "may be given only once";
  return "takes at most " + std::to_string(values) + " values";
}

}  // namespace

std::string Suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  const auto nearest = Nearest(word, views);
  return nearest ? "; did you mean " + std::string(*nearest) + "?" : std::string();
}

std::string Complaint(const CLI::App& program, const std::vector<std::string>& words,
                      const CLI::ParseError& error) {
  const Reading read = Read(program, words);
  std::string wrong = error.what();
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  // The value after an unknown option is taken for an argument, which it may not fit.
  const bool unfit = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr ||
                     dynamic_cast<const CLI::ConversionError*>(&error) != nullptr;
  if ((extra || missing || unfit) && !read.unknown.empty()) {
    wrong = read.unknown;
  } else if (missing && read.app->get_require_subcommand_min() > 0) {
    wrong = "a subcommand is required";
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string option = wrong.substr(0, wrong.find(':'));
    if (const CLI::Option* known = read.app->get_option_no_throw(option)) {
      const bool too_many = wrong.find("At Most") != std::string::npos;
      wrong = option + ": " +
              (too_many ? AtMost(known->get_items_expected_max()) : "requires a value") + ": ";
      wrong += known->get_description();
    }
  } else if (wrong.starts_with(kNoConversion) && wrong.find(" = ") != std::string::npos) {
    const std::size_t equals = wrong.find(" = ");
    const std::string name = wrong.substr(kNoConversion.size(), equals - kNoConversion.size());
    const std::string value = wrong.substr(equals + 3);
    wrong = name + ": expected a number, got '" + value + "'" + WhereToFind(*read.app, name, value);
  } else if (unfit) {
    wrong = RangeInWords(
        std::move(wrong), [&read](const std::string& name) { return ExpectedBy(*read.app, name); },
        [&read](const std::string& name, const std::string& got) {
          const bool is_number = got.find_first_not_of("-.0123456789") == std::string::npos;
          return WhereToFind(*read.app, name, is_number ? "" : got);
        });
  }
  return "weir: " + wrong + "\nsee `" + read.path + " --help`\n";
}

}  // namespace weir::app
