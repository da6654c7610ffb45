#include <iostream>
#include <memory>
#include <sstream>

#include "command.h"

// weir completion bash | zsh | fish: a script for the shell, made from the program's own words and
// options, so that it is never out of date.

namespace weir::app::completion_command {
namespace {

/// One place on the command line: the words so far, and what may come next.
struct Place {
  std::string path;                                       // "policy apply"; empty at first
  std::vector<std::pair<std::string, std::string>> next;  // word → what it does
};

std::string FirstLine(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  std::erase_if(line, [](char c) { return c == '\'' || c == '`' || c == ':'; });
  return line;
}

void Walk(const Syntax& syntax, const std::string& path, std::vector<Place>& places) {
  Place place{path, {}};
  const std::vector<Syntax> words = syntax.subcommands();
  for (const Syntax& word : words) place.next.emplace_back(word.name(), FirstLine(word.about()));
  for (const auto& [name, about] : syntax.options()) {
    place.next.emplace_back(name, FirstLine(about));
  }
  places.push_back(std::move(place));
  for (const Syntax& word : words) {
    Walk(word, path.empty() ? word.name() : path + " " + word.name(), places);
  }
}

std::string WordsOf(const Place& place) {
  std::string words;
  for (const auto& [word, about] : place.next) words += (words.empty() ? "" : " ") + word;
  return words;
}

/// The words before the cursor that are not options, and what may follow them.
std::string Cases(const std::vector<Place>& places, const char* before, const char* after) {
  std::ostringstream out;
  for (const Place& place : places) {
    out << "    \"" << place.path << "\") " << before << WordsOf(place) << after << " ;;\n";
  }
  return out.str();
}

constexpr const char* kPath = R"(  local path="" word i
  for ((i = FIRST; i < COUNT; i++)); do
    word="${WORDS[i]}"
    case "$word" in -*) break ;; esac
    path="${path:+$path }$word"
  done
)";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

void PrintBash(const std::vector<Place>& places) {
  std::string path = Replaced(kPath, "FIRST", "1");
  path = Replaced(Replaced(path, "COUNT", "COMP_CWORD"), "WORDS", "COMP_WORDS");
  std::cout << "_weir() {\n"
            << path << "  local next=\"\"\n  case \"$path\" in\n"
            << Cases(places, "next=\"", "\"")
            << "  esac\n  mapfile -t COMPREPLY < <(compgen -W \"$next\" -- "
               "\"${COMP_WORDS[COMP_CWORD]}\")\n}\ncomplete -o default -F _weir weir\n";
}

void PrintZsh(const std::vector<Place>& places) {
  std::string path = Replaced(kPath, "FIRST", "2");
  path = Replaced(Replaced(path, "COUNT", "CURRENT"), "WORDS", "words");
  std::cout << "#compdef weir\n_weir() {\n"
            << path << "  local -a next\n  case \"$path\" in\n"
            << Cases(places, "next=(", ")")
            << "  esac\n  compadd -a next\n  _files\n}\ncompdef _weir weir\n";
}

void PrintFish(const std::vector<Place>& places) {
  std::cout << "function __weir_at\n  set -l path\n  for word in (commandline -opc)[2..]\n"
               "    string match -q -- '-*' $word; and break\n    set -a path $word\n  end\n"
               "  test \"$path\" = \"$argv[1]\"\nend\n";
  for (const Place& place : places) {
    for (const auto& [word, about] : place.next) {
      std::cout << "complete -c weir -n '__weir_at \"" << place.path << "\"' -f -a '" << word
                << "' -d '" << about << "'\n";
    }
  }
}

void Configure(Syntax word) {
  auto shell = std::make_shared<std::string>();
  word.AddOption("shell", *shell, "The shell: bash, zsh or fish")
      .Required()
      .OneOf({"bash", "zsh", "fish"});
  word.Footer(
      "  source <(weir completion bash)\n"
      "  weir completion fish > ~/.config/fish/completions/weir.fish");
  word.OnRun([word, shell] {
    std::vector<Place> places;
    Walk(word.parent(), "", places);
    if (*shell == "bash") PrintBash(places);
    if (*shell == "zsh") PrintZsh(places);
    if (*shell == "fish") PrintFish(places);
    return 0;
  });
}

const Command kCompletion("completion", "Print a completion script for a shell.", Configure);

}  // namespace
}  // namespace weir::app::completion_command
