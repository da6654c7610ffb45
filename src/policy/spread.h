#pragma once

#include "base/key_spread.h"
#include "policy/policy_set.h"

namespace weir::policy {

/// Where the keys of each policy live in a Redis Cluster, worked out from which policies can apply
/// to one descriptor and are then charged all or none: these live together, and whatever can spread
/// does. Shadow policies count as if they were enforced, so that keys stay where they are when one
/// is. docs/adr/0013-spread-by-policies.md.
KeyPlaces SpreadOf(const PolicySet& set);

}  // namespace weir::policy
