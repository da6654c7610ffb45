#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/key_spread.h"
#include "policy/policy_set.h"

namespace weir::policy {

/// Where the keys of each policy live in a Redis Cluster, derived from which policies can apply to
/// one descriptor and are then charged all or none: these live together, and everything that can
/// spread does. Shadow policies count as if they were enforced, so that keys do not move when one
/// is. See docs/adr/0013-spread-by-policies.md.
KeyPlaces SpreadOf(const PolicySet& set);

/// Reports for each domain two policies, if any, that live in different slots although descriptors
/// of one request can match both: such a request is charged slot by slot. Assumes that an entry has
/// the same value in all descriptors of a request. Only policies whose `store` is this one or unset
/// are considered.
std::vector<std::string> CrossingPolicies(const PolicySet& set, std::string_view store = {});

}  // namespace weir::policy
