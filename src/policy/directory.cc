#include "policy/directory.h"

#include <algorithm>

#include "policy/policy_set.h"

namespace weir::policy {
namespace {

bool MatchesAnyValue(const Policy* policy) {
  return std::ranges::all_of(policy->definition.match,
                             [](const EntryMatch& entry) { return entry.kind == MatchKind::kAny; });
}

}  // namespace

Directory::Directory(const std::vector<Policy>& policies) {
  by_start_.reserve(policies.size());
  for (const Policy& policy : policies) {
    const std::string_view start = policy.key_parts.front();
    by_start_.emplace(start.substr(0, start.find('|')), &policy);
    if (!policy.definition.has_match) continue;
    Names names;
    for (const EntryMatch& entry : policy.definition.match) names.insert(entry.name);
    domains_[policy.definition.domain].insert(names.begin(), names.end());
    if (policy.definition.shadow || !policy.definition.quota || names.empty()) continue;
    limits_[policy.definition.domain][std::move(names)].push_back(&policy);
  }
  for (auto& [domain, limits] : limits_) {
    for (auto& [names, same] : limits) {
      std::stable_partition(same.begin(), same.end(), MatchesAnyValue);
    }
  }
}

const Directory::ByNames* Directory::LimitsOf(std::string_view domain) const {
  const auto found = limits_.find(domain);
  return found == limits_.end() ? nullptr : &found->second;
}

const Policy* Directory::ByBucket(std::string_view start) const {
  const auto found = by_start_.find(start);
  return found == by_start_.end() ? nullptr : found->second;
}

}  // namespace weir::policy
