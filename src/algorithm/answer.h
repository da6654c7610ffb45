#pragma once

// Shared by the steps that count used permits: when a cost fits, and what to answer.

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/quota.h"

namespace weir::algorithm {

/// True if `cost` is a charge (not a peek) and fits in addition to `used` permits.
inline bool Charges(const Quota& quota, std::int64_t used, std::int64_t cost) noexcept {
  return cost > 0 && cost <= quota.limit() - used;
}

/// The decision on `cost` with `used` permits in use, except for its times and lease.
inline Decision Answer(const Quota& quota, std::int64_t used, std::int64_t cost) noexcept {
  Decision decision;
  decision.limit = quota.limit();
  decision.remaining = std::max<std::int64_t>(quota.limit() - used, 0);
  if (cost > quota.limit()) {
    decision.verdict = Verdict::kNever;
  } else if (cost > 0 && cost > decision.remaining) {
    decision.verdict = Verdict::kLimited;
  }
  return decision;
}

/// What an overdraw adds to `counted` permits: all of `cost`, up to kMaxLimit in total.
inline std::int64_t Overcharge(std::int64_t counted, std::int64_t cost) noexcept {
  return std::clamp<std::int64_t>(cost, 0, std::max<std::int64_t>(kMaxLimit - counted, 0));
}

/// The standing of a key with `used` permits in use, except for times: limited while it is in debt.
inline Decision Standing(const Quota& quota, std::int64_t used) noexcept {
  Decision decision = Answer(quota, used, 0);
  if (used > quota.limit()) decision.verdict = Verdict::kLimited;
  return decision;
}

/// The time from `now` to `then`, at least 0, saturated at 292 years.
inline std::chrono::nanoseconds Until(Nanos then, Nanos now) noexcept {
  if (then <= now) return std::chrono::nanoseconds(0);
  Nanos span = 0;
  if (__builtin_sub_overflow(then, now, &span)) return std::chrono::nanoseconds::max();
  return std::chrono::nanoseconds(span);
}

/// value / divisor, rounded towards minus infinity. Requires divisor > 0.
inline std::int64_t FloorDivide(std::int64_t value, std::int64_t divisor) noexcept {
  const std::int64_t quotient = value / divisor;
  return value % divisor < 0 ? quotient - 1 : quotient;
}

}  // namespace weir::algorithm
