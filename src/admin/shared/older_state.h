#pragma once

#include <string>

#include "admin/shared/ledger.h"

namespace weir::policy::shared {

/// What a database lacks that has gone back to an older state, as after a failover to a replica
/// that was behind: "change 2 comes after 4; no longer in force: c, d". `known` is what this node
/// had in force, at change `change`.
std::string LacksInWords(const PolicyMap& known, std::int64_t change, const Snapshot& now);

}  // namespace weir::policy::shared
