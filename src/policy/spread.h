#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/key_spread.h"
#include "policy/policy_set.h"

namespace weir::policy {

/// Where the keys of each policy live in a Redis Cluster, worked out from which policies can apply
/// to one descriptor and are then charged all or none: these live together, and whatever can spread
/// does. Shadow policies count as if they were enforced, so that keys stay where they are when one
/// is. docs/adr/0013-spread-by-policies.md.
KeyPlaces SpreadOf(const PolicySet& set);

/// Says of each domain which two policies, if any, live in different slots although descriptors of
/// one request can meet both: such a request is charged slot by slot. It is taken for granted that
/// an entry has one value in all descriptors of a request. Only of policies whose `store` is this
/// one or not named.
std::vector<std::string> CrossingPolicies(const PolicySet& set, std::string_view store = {});

}  // namespace weir::policy
