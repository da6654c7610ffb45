// A configuration file from anybody: it is refused with a reason, or every value is in its range.
// The same text is tried as the value of each setting.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/url.h"
#include "config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<weir::policy::yaml::Problem> problems;
  const weir::config::Config config = weir::config::Parse(text, "fuzz.yaml", {}, problems);
  if (problems.empty()) {
    const bool sane =
        config.ipv6_prefix >= 1 && config.ipv6_prefix <= 128 && config.max_keys >= 1 &&
        config.local_share > 0 && config.local_share <= 1 && config.limits.max_body >= 1024 &&
        (config.listen.http.off || config.listen.http.loopback() || !config.admin.keys.empty());
    if (!sane) std::abort();
  }
  std::vector<weir::config::Override> overrides;
  for (const weir::config::SettingInfo& info : weir::config::Settings()) {
    overrides.push_back({std::string(info.key), std::string(text), "fuzz"});
  }
  problems.clear();
  weir::config::Parse("", "fuzz.yaml", overrides, problems);
  weir::WithoutSecrets(text);
  return 0;
}
