// The tree of an untrusted policy file: it is refused with a location, or compiles to policies that
// match and make keys. Words of the input are tried as a request, so that what was written is
// also looked up.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "policy/keys.h"
#include "policy/policy_file.h"
#include "policy/policy_set.h"
#include "tree.h"

namespace {

using weir::policy::Entry;

// Words of the input in pairs: names and values that the policies are likely to contain.
std::vector<Entry> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty() && words.size() < 16) {
    const std::size_t end = std::min(text.find_first_of(" \n:{},\"'"), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::vector<Entry> entries;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) entries.push_back({words[i], words[i + 1]});
  return entries;
}

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<weir::policy::yaml::Problem> problems;
  const weir::fuzz::Tree tree(text);
  weir::policy::yaml::Report report("fuzz.yaml", problems);
  auto definitions = weir::policy::ReadPolicies(*tree.root(), report);
  for (const auto& problem : problems) Require(!problem.message.empty());
  if (!problems.empty()) return 0;
  weir::policy::PolicyIds ids;
  const auto set = weir::policy::PolicySet::Compile(std::move(definitions),
                                                    {weir::policy::DefaultPolicy(), 0.1}, ids);
  if (!set.ok()) return 0;
  const std::vector<Entry> entries = Words(text);
  weir::policy::MatchBuffer buffer;
  for (const auto& policy : (*set)->policies()) {
    (*set)->Match(policy.definition.domain, entries, buffer);
    for (const auto& applying : buffer.applying) {
      std::string key;
      weir::policy::AppendKey(key, applying.policy->key_parts,
                              std::span(buffer.values).subspan(applying.values_begin));
      Require(!key.empty());
    }
    if (!policy.definition.key.empty()) {
      Require(&(*set)->ForKey(policy.definition.key) == &policy);
    }
  }
  return 0;
}
