// One setting from a flag or a variable: the first byte chooses it, the rest is its value. Also the
// same bytes as a URL whose secrets must not be shown.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/url.h"
#include "config/config.h"
#include "config/read.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto settings = weir::config::Settings();
  const weir::config::SettingInfo& info = settings[data[0] % settings.size()];
  const std::string_view value(reinterpret_cast<const char*>(data) + 1, size - 1);
  // Keys may come from files, which are not to be read here; a default policy is a tree, which
  // `config` has.
  if (info.key.ends_with("keys") && value.find('@') != std::string_view::npos) return 0;
  if (info.key == "default_policy") return 0;
  const std::vector<weir::config::Override> overrides = {
      {std::string(info.key), std::string(value), "fuzz"}};
  std::vector<weir::policy::yaml::Problem> problems;
  weir::config::Read(nullptr, "", overrides, problems);
  for (const auto& problem : problems) {
    if (problem.message.empty()) std::abort();
  }
  weir::WithoutSecrets(value);
  return 0;
}
