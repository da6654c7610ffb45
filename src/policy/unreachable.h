#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy/policy_set.h"

namespace weir::policy {

/// A sentence, with its position, for each policy that no request can match or no request can
/// pass, for two that replace each other, and for a name in `replaces` that no policy has: most
/// likely mistakes, though the files are well formed.
std::vector<std::string> Unreachable(const PolicySet& set);

/// Why no request can match these entries of a policy that is not a chain: "method 'get': methods
/// are upper case". nullopt if requests can.
std::optional<std::string> WhyUnreachable(std::span<const EntryMatch> match);

/// Why policies with this `match` limit only one of the spellings that a path has, so that a client
/// evades them with another, and what to write instead: "route '/V1/Pay' …". Nothing if they do
/// not.
std::optional<std::string> WhyEvaded(std::span<const EntryMatch> match);

}  // namespace weir::policy
