// Text as a configuration of Envoy's rate limit service. What is read without a problem must
// compile or clash, and what is printed of it must read back.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "policy/envoy_config.h"
#include "policy/policy_file.h"
#include "policy/policy_set.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weir::policy::Definition;
  std::vector<weir::policy::yaml::Problem> problems;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<Definition> read = weir::policy::ParseEnvoyConfig(text, "fuzz", problems);
  if (!problems.empty() || read.empty()) return 0;
  std::vector<Definition> again =
      weir::policy::ParsePolicies(weir::policy::FormatChains(read), "again", problems);
  if (!problems.empty() || again.size() != read.size()) std::abort();
  for (std::size_t i = 0; i < read.size(); ++i) {
    again[i].source = read[i].source;
    if (!(again[i] == read[i])) std::abort();
  }
  weir::policy::PolicyIds ids;
  static_cast<void>(weir::policy::PolicySet::Compile(std::move(again),
                                                     {weir::policy::DefaultPolicy(), 0.1}, ids));
  return 0;
}
