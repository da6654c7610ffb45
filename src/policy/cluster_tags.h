#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy_set.h"

namespace weir::policy {

/// In a Redis Cluster whose keys share slots by the value of an entry (`?tag=ENTRY`), everything
/// that one request charges must have the same value of that entry
/// (docs/adr/0006-redis-cluster-tags.md). Reports for each domain two policies, if any, that can
/// apply to one descriptor with different values: every request that matches both is charged slot
/// by slot. Requests with several descriptors are not examined here.
std::vector<std::string> TagConflicts(const PolicySet& set, std::string_view entry);

/// Whether both can apply to one descriptor.
bool CanMeet(const Definition& a, const Definition& b);

/// The policy's match for an entry; null: it has none.
const EntryMatch* EntryOf(const Definition& policy, std::string_view name);
/// Whether a value can match both.
bool ValuesMeet(const EntryMatch& a, const EntryMatch& b);

/// Whether the policy's keys contain the request's value of an entry: not if it has no such entry,
/// or one key for all values.
bool KeyHasValue(const Definition& policy, std::string_view entry);

}  // namespace weir::policy
