#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "algorithm/lease.h"
#include "policy/definition.h"

namespace weir::policy {

/// Whether regional stores stand between nodes and the home store, and whether this is one.
struct RegionOptions {
  std::chrono::nanoseconds term{0};  ///< how long they keep permits; zero: there are none
  bool lends = false;                ///< this process is one
};

/// The range of that term: nodes lease for a quarter of it.
inline constexpr std::chrono::nanoseconds kShortestRegionTerm = 4 * algorithm::kShortestLease;
inline constexpr std::chrono::nanoseconds kLongestRegionTerm = algorithm::kLongestRegionLease;

/// The terms that charges of a leased policy are made under, or why it cannot be leased: "mode: …".
/// Requires a quota and a mode other than kExact.
Result<algorithm::LeaseTerms> LeaseTermsOf(const Definition& definition,
                                           const RegionOptions& region = {});

/// Whether a policy can be charged as it says, with its quota: some cannot be leased or overdrawn.
Status CheckCharging(const Definition& definition);

/// Whether the store that it names, if any, is one of `stores`; nullopt: any name is accepted.
Status CheckStore(const Definition& definition,
                  const std::optional<std::vector<std::string>>& stores);

}  // namespace weir::policy
