#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy_set.h"

namespace weir::policy {

/// In a Redis Cluster whose keys share slots by the value of an entry (`?tag=ENTRY`), what one
/// request charges must have one value of that entry (docs/adr/0006-redis-cluster-tags.md). Says of
/// each domain which two policies, if any, can apply to one descriptor with different ones: every
/// request that meets both is charged slot by slot. What several descriptors of one request do is
/// not known here.
std::vector<std::string> TagConflicts(const PolicySet& set, std::string_view entry);

/// Whether both can apply to one descriptor.
bool CanMeet(const Definition& a, const Definition& b);

/// What the policy says of an entry; null: nothing.
const EntryMatch* EntryOf(const Definition& policy, std::string_view name);
/// Whether a value can match both.
bool ValuesMeet(const EntryMatch& a, const EntryMatch& b);

/// Whether the policy's keys hold the request's value of an entry: not if it has no such entry, or
/// one key for all values.
bool KeyHasValue(const Definition& policy, std::string_view entry);

}  // namespace weir::policy
