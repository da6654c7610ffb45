#include "policy/directory.h"

#include "policy/policy_set.h"

namespace weir::policy {

Directory::Directory(const std::vector<Policy>& policies) {
  by_start_.reserve(policies.size());
  for (const Policy& policy : policies) {
    const std::string_view start = policy.key_parts.front();
    by_start_.emplace(start.substr(0, start.find('|')), &policy);
    if (!policy.definition.has_match) continue;
    Names& used = domains_[policy.definition.domain];
    for (const EntryMatch& entry : policy.definition.match) used.insert(entry.name);
  }
}

const Policy* Directory::ByBucket(std::string_view start) const {
  const auto found = by_start_.find(start);
  return found == by_start_.end() ? nullptr : found->second;
}

}  // namespace weir::policy
