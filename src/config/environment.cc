// Settings from environment variables.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/nearest.h"
#include "config/config.h"
namespace weir::config {
namespace {

/// Variables of commands that call a service, of the sender and of ./dev.
constexpr std::string_view kOfOthers[] = {"WEIR_URL",          "WEIR_ADMIN_KEY", "WEIR_KEY",
                                          "WEIR_KEY_FILE",     "WEIR_CA",        "WEIR_CERT",
                                          "WEIR_CERT_KEY",     "WEIR_TIMEOUT",   "WEIR_SENDER_DATA",
                                          "WEIR_SENDER_TOKEN", "WEIR_JOBS",      "WEIR_CONFIG"};

}  // namespace

std::string EnvironmentName(std::string_view key) {
  std::string name = "WEIR_";
  for (const char c : key) {
    name += c == '.' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

namespace {

// Variables of envoyproxy/ratelimit that map to a setting here. WEIR_… is applied later and wins.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kOfEnvoy = {
    {{"LIMIT_RESPONSE_HEADERS_ENABLED", "grpc.response_headers"},
     {"LIMIT_LIMIT_HEADER", "grpc.limit_header"},
     {"LIMIT_REMAINING_HEADER", "grpc.remaining_header"},
     {"LIMIT_RESET_HEADER", "grpc.reset_header"},
     {"RESPONSE_DYNAMIC_METADATA", "grpc.dynamic_metadata"}}};

void ReadEnvoyVariables(std::span<const char* const> variables, Environment& environment) {
  for (const char* variable : variables) {
    const std::string_view text(variable);
    const std::size_t equals = std::min(text.find('='), text.size());
    for (const auto& [name, key] : kOfEnvoy) {
      if (text.substr(0, equals) != name || equals == text.size()) continue;
      environment.overrides.push_back(
          {std::string(key), std::string(text.substr(equals + 1)), std::string(name)});
    }
  }
}

}  // namespace

Environment ReadEnvironment(std::span<const char* const> variables) {
  Environment environment;
  ReadEnvoyVariables(variables, environment);
  std::vector<std::string> names;
  for (const SettingInfo& info : Settings()) names.push_back(EnvironmentName(info.key));
  for (const char* variable : variables) {
    const std::string_view text(variable);
    if (!text.starts_with("WEIR_")) continue;
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string name(text.substr(0, equals));
    if (std::ranges::find(kOfOthers, name) != std::end(kOfOthers)) continue;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const std::vector<std::string_view> views(names.begin(), names.end());
      const auto nearest = Nearest(name, views);
      environment.unknown.push_back(
          "unknown setting " + name +
          (nearest ? "; did you mean " + std::string(*nearest) + "?" : std::string()));
      continue;
    }
    const SettingInfo& info = Settings()[static_cast<std::size_t>(found - names.begin())];
    environment.overrides.push_back(
        {std::string(info.key), std::string(text.substr(std::min(equals + 1, text.size()))), name});
  }
  return environment;
}

Environment ReadEnvironment() {
  std::vector<const char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  return ReadEnvironment(variables);
}

}  // namespace weir::config
