#pragma once

#include <cstdint>
#include <limits>

#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/quota.h"

namespace weir::algorithm {

/// A token bucket as GCRA: the moment at which the bucket will be full again ("theoretical arrival
/// time"), in whole nanoseconds plus `frac` / quota.refill() of one. At or before now: a full bucket.
struct TokenBucketState {
  Nanos full_at = std::numeric_limits<Nanos>::min();
  std::uint32_t frac = 0;

  friend bool operator==(const TokenBucketState&, const TokenBucketState&) = default;
};

/// Charges `cost` (0 = only look) at `now`. A refused charge leaves `state` as it was.
Decision Acquire(const Quota& quota, TokenBucketState& state, Nanos now, std::int64_t cost) noexcept;

/// Gives back up to `cost`.
Decision Refund(const Quota& quota, TokenBucketState& state, Nanos now, std::int64_t cost) noexcept;

}  // namespace weir::algorithm
