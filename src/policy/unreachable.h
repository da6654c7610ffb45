#pragma once

#include <string>
#include <vector>

#include "policy/policy_set.h"

namespace weir::policy {

/// A sentence for each policy that no request can meet, or that no request can pass, and for two
/// that replace each other, with its place: what is most likely a mistake, though the files are
/// well formed.
std::vector<std::string> Unreachable(const PolicySet& set);

}  // namespace weir::policy
