// The tree of an untrusted configuration file: it is refused with a reason, or every value is in
// its range.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/read.h"
#include "tree.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const weir::fuzz::Tree tree(text);
  std::vector<weir::policy::yaml::Problem> problems;
  const weir::config::Config config = weir::config::Read(tree.root(), "fuzz.yaml", {}, problems);
  if (!problems.empty()) return 0;
  const bool sane =
      config.ipv6_prefix >= 1 && config.ipv6_prefix <= 128 && config.max_keys >= 1 &&
      config.local_share > 0 && config.local_share <= 1 && config.limits.max_body >= 1024 &&
      (config.listen.http.off || config.listen.http.loopback() || !config.admin.keys.empty() ||
       !config.access.keys.empty() || config.oidc.enabled() || config.admin.keyless_allowed);
  if (!sane) std::abort();
  return 0;
}
