#pragma once

#include <string>

#include "admin/shared/ledger.h"

namespace weir::policy::shared {

/// How the policies of a database differ that has gone back to an older state, as after a failover
/// to a replica that was behind: "change 2 comes after 4; no longer in force: c, d; changed back:
/// pay; in force again: x". `known` is what this node had in force, at change `change`.
std::string DifferenceInWords(const PolicyMap& known, std::int64_t change, const Snapshot& now);

}  // namespace weir::policy::shared
