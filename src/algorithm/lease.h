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
// Returning what was not spent undoes at most what the charge still weighs. Refund must not be
// used for it: it gives back what has flowed in meanwhile, or what somebody else was charged.

#include <chrono>
#include <cstdint>

#include "algorithm/state.h"
#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::algorithm {

/// No lease is longer, or shorter: below it a round trip to the store eats it up.
inline constexpr std::chrono::milliseconds kLongestLease{250};
inline constexpr std::chrono::milliseconds kShortestLease{10};

/// What every charge of a leased policy is charged under, and how long permits may be kept.
struct LeaseTerms {
  Quota quota;
  Nanos term = 0;

  friend bool operator==(const LeaseTerms&, const LeaseTerms&) = default;
};

/// The terms for a quota, or why it cannot be leased.
Result<LeaseTerms> TermsFor(const Quota& quota, std::chrono::nanoseconds longest = kLongestLease);

/// Charges the first of want, want / 2, want / 4, … 1 that fits: halves, so that a store whose
/// arithmetic is a script needs to do no more than compare, and that the last permits of a busy key
/// are not all taken by one node. State::capacity as for Acquire.
LeaseGrant Lease(const Quota& quota, State& state, Nanos now, std::int64_t want) noexcept;

/// The moment that names a charge which got `decision` at `now`.
Nanos ChargedAt(const Quota& quota, Nanos now, const Decision& decision) noexcept;

/// How long after the grant its permits may be spent; at most `term`.
Nanos SpendFor(const LeaseTerms& terms, const Decision& decision) noexcept;

/// Gives back `count` permits of a lease that was charged `at`, as far as they still weigh. Needs
/// no more capacity than the state has. The decision tells how the key stands then.
Decision Return(const Quota& quota, State& state, Nanos now, Nanos at, std::int64_t count) noexcept;

}  // namespace weir::algorithm
