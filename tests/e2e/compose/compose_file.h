#pragma once

// compose.yaml as local processes: the file's own commands and environment, with the names of
// servers and the folders of volumes replaced.

#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::test {

/// Not thread-safe; used by a test's thread only.
class ComposeFile {
 public:
  explicit ComposeFile(const std::string& path) : file_(YAML::LoadFile(path)) {}

  /// Maps text of the file to what a test uses instead: {"@postgres:5432", "@127.0.0.1:6543"}.
  void Replace(std::string text, std::string by) { places_.emplace_back(text, by); }

  std::vector<std::string> Command(const std::string& service) const {
    return Words(file_["services"][service]["command"]);
  }
  /// The arguments of the health check after `CMD weir`.
  std::vector<std::string> Healthcheck(const std::string& service) const {
    std::vector<std::string> words = Words(Setting(service, "healthcheck")["test"]);
    if (words.size() < 3 || words[0] != "CMD" || words[1] != "weir") {
      throw std::runtime_error(service + " has a health check of another kind");
    }
    words.erase(words.begin(), words.begin() + 2);
    return words;
  }
  /// The health check of a third-party server, as a program and its arguments.
  std::vector<std::string> ServerHealthcheck(const std::string& service) const {
    std::vector<std::string> words = Words(Setting(service, "healthcheck")["test"]);
    const std::string kind = words.at(0);
    words.erase(words.begin());
    if (kind == "CMD") return words;
    std::string& script = words.at(0);
    for (std::size_t at = script.find("$$"); at != std::string::npos; at = script.find("$$")) {
      script.erase(at, 1);
    }
    return {"sh", "-c", script};
  }
  std::map<std::string, std::string> Environment(const std::string& service) const {
    std::map<std::string, std::string> environment;
    for (const auto& one : Setting(service, "environment")) {
      environment[one.first.as<std::string>()] = Place(Defaults(one.second.as<std::string>()));
    }
    return environment;
  }

 private:
  YAML::Node Setting(const std::string& service, const std::string& name) const {
    const YAML::Node found = file_["services"][service][name];
    if (!found) throw std::runtime_error("compose.yaml: " + service + " has no " + name);
    return found;
  }

  std::vector<std::string> Words(const YAML::Node& node) const {
    std::vector<std::string> words;
    for (const auto& word : node) words.push_back(Place(word.as<std::string>()));
    return words;
  }

  /// `${NAME:-value}` → value.
  static std::string Defaults(std::string text) {
    for (std::size_t at = text.find("${"); at != std::string::npos; at = text.find("${")) {
      const std::size_t dash = text.find(":-", at);
      const std::size_t end = text.find('}', at);
      if (dash == std::string::npos || end < dash) throw std::runtime_error("no default: " + text);
      text.replace(at, end + 1 - at, text.substr(dash + 2, end - dash - 2));
    }
    return text;
  }

  std::string Place(std::string text) const {
    for (const auto& [from, to] : places_) {
      const std::size_t at = text.find(from);
      if (at != std::string::npos) text.replace(at, from.size(), to);
    }
    return text;
  }

  YAML::Node file_;
  std::vector<std::pair<std::string, std::string>> places_;
};

}  // namespace weir::test
