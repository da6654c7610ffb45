#pragma once

// Leases: permits that a node takes from the store in advance and spends by itself for a while.
// The theorem, its proof and its assumptions: docs/design/leases.md.
//
// A permit is charged in the store at one moment and spent up to a term T later. So the store is
// charged under a narrowed quota, and what is spent then satisfies the original one:
//
//   token bucket     capacity B - ceil(r T); the same rate
//   sliding log      window W + T; the same limit
//   fixed window     the same quota; a lease ends with the window it was charged in
//   sliding counter  the same quota; a lease ends with the bucket it was charged in
//
// Returning what was not spent undoes at most what the charge still counts for. Refund must not be
// used for it: it would also return what has flowed in since, or what others were charged.

#include <chrono>
#include <cstdint>

#include "algorithm/state.h"
#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::algorithm {

/// Bounds of a lease: with a shorter one, a round trip to the store would take up most of it.
inline constexpr std::chrono::milliseconds kLongestLease{250};
inline constexpr std::chrono::milliseconds kShortestLease{10};

/// The part of a token bucket that nodes reserve in shares, each of which they refill by
/// themselves: kShareUnits in total, for a term at a time.
struct RateTerms {
  std::int64_t burst = 0;   ///< permits that all shares together may hold
  std::int64_t refill = 0;  ///< permits of all shares together per `period`; 0: there are no shares
  Nanos period = 0;
  Nanos term = 0;

  friend bool operator==(const RateTerms&, const RateTerms&) = default;
};
inline constexpr std::int64_t kShareUnits = std::int64_t{1} << 16;

/// The longest share, and the longest fill time of a bucket that is divided into shares.
inline constexpr std::chrono::seconds kShareTerm{2};
inline constexpr std::chrono::hours kSlowestShared{1};

/// What every charge of a leased policy is charged under, and how long permits may be kept.
struct LeaseTerms {
  Quota quota;
  Nanos term = 0;
  RateTerms rate = {};  ///< in addition to the quota: what is not charged to it
  /// How long the store of a region, which stands between nodes and the home store, may keep
  /// permits; the quota is narrowed for that, and `term` is a node's. 0: there is no such store.
  Nanos region = 0;

  friend bool operator==(const LeaseTerms&, const LeaseTerms&) = default;
};

/// The terms for a quota, or why it cannot be leased.
Result<LeaseTerms> TermsFor(const Quota& quota, std::chrono::nanoseconds longest = kLongestLease);

/// The terms for a token bucket of which nodes reserve shares: seven eighths of its rate and a
/// quarter of its capacity. The rest is charged and leased as with TermsFor.
Result<LeaseTerms> RateTermsFor(const Quota& quota,
                                std::chrono::nanoseconds share_term = kShareTerm);

/// The longest time that a region's store keeps permits.
inline constexpr std::chrono::seconds kLongestRegionLease{60};

/// The terms of a node whose region's store keeps permits for up to `longest` and lends them to
/// nodes for a part of that. Quotas that a region cannot lend (their windows are too short, or they
/// are concurrency quotas) have the terms of TermsFor, on all nodes.
Result<LeaseTerms> RegionTermsFor(const Quota& quota, std::chrono::nanoseconds longest);

/// The terms under which a region's store keeps permits whose nodes have `terms`.
LeaseTerms AtRegion(const LeaseTerms& terms);

/// Charges the first of want, want / 2, want / 4, … 1 that fits: halves, so that a store that
/// computes in a script only has to compare, and so that one node does not take all of the last
/// permits of a busy key. State::capacity as for Acquire.
LeaseGrant Lease(const Quota& quota, State& state, Nanos now, std::int64_t want) noexcept;

/// The time that names a charge which got `decision` at `now`: when it is counted, or the end of an
/// anchored window.
Nanos ChargedAt(const Quota& quota, Nanos now, const Decision& decision) noexcept;

/// How long after a charge that got `decision` its window (or bucket) ends; the maximum value if
/// the quota has none.
Nanos WindowEndsIn(const Quota& quota, const Decision& decision) noexcept;

/// How long after the grant its permits may be spent; at most `term`.
Nanos SpendFor(const LeaseTerms& terms, const Decision& decision) noexcept;

/// Returns `count` permits of a lease or of any other charge that was made `at` (ChargedAt), as far
/// as they still count; permits in flight are released instead. Needs no more capacity than the
/// state has. The decision is the key's state afterwards.
Decision Return(const Quota& quota, State& state, Nanos now, Nanos at, std::int64_t count) noexcept;

}  // namespace weir::algorithm
