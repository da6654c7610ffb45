#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "policy/policy_set.h"

namespace weir::policy {

/// What to know about leasing a quota whose lost permits come back much later: those of a window of
/// over ten minutes, when it ends. Empty for others.
std::string LongLeaseOf(Mode mode, Algorithm algorithm, std::chrono::nanoseconds window);

/// A sentence, with its position, for each policy that is so leased.
std::vector<std::string> LongLeases(const PolicySet& set);

}  // namespace weir::policy
