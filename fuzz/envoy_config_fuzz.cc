// A tree as a configuration of Envoy's rate limit service. What is read without an error must
// compile or report a conflict, and its printed form must parse again: checked for some only, since
// that takes YAML, which is slow.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <vector>

#include "policy/envoy_config.h"
#include "policy/policy_file.h"
#include "policy/policy_set.h"
#include "tree.h"

namespace {

/// One in this many valid inputs is printed and parsed again.
constexpr std::size_t kOneOf = 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weir::policy::Definition;
  std::vector<weir::policy::yaml::Problem> problems;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const weir::fuzz::Tree tree(text);
  weir::policy::yaml::Report report("fuzz", problems);
  std::vector<Definition> read = weir::policy::ReadEnvoyConfig(*tree.root(), report);
  if (!problems.empty() || read.empty()) return 0;
  weir::policy::PolicyIds ids;
  if (std::hash<std::string_view>()(text) % kOneOf != 0) {
    static_cast<void>(weir::policy::PolicySet::Compile(std::move(read),
                                                       {weir::policy::DefaultPolicy(), 0.1}, ids));
    return 0;
  }
  std::vector<Definition> again =
      weir::policy::ParsePolicies(weir::policy::FormatChains(read), "again", problems);
  if (!problems.empty() || again.size() != read.size()) std::abort();
  for (std::size_t i = 0; i < read.size(); ++i) {
    again[i].source = read[i].source;
    if (!(again[i] == read[i])) std::abort();
  }
  return 0;
}
