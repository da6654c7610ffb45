#pragma once

// The step that nearly every check takes is in this header: it is the engine's hot path and must be
// inlined there. Time spans are whole nanoseconds plus a fraction in units of 1/refill ns, so a
// rate such as 3 per second, whose permit takes 333,333,333 1/3 ns, stays exact forever. Amounts
// are compared as debts against the fill time (never as absolute times), so no sum can overflow
// whatever the clock says.

#include <cstdint>
#include <limits>
#include <span>

#include "algorithm/bytes.h"
#include "algorithm/quota_access.h"
#include "algorithm/state.h"
#include "algorithm/time_range.h"
#include "base/int128.h"
#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/quota.h"

namespace weir::algorithm {

/// A token bucket as GCRA: the time at which the bucket will be full again ("theoretical arrival
/// time"), in whole nanoseconds plus `frac` / quota.refill() of one. At or before now: a full
/// bucket.
struct TokenBucketState {
  Nanos full_at = std::numeric_limits<Nanos>::min();
  std::uint32_t frac = 0;

  friend bool operator==(const TokenBucketState&, const TokenBucketState&) = default;
};

/// A token bucket's bytes (little-endian: i64 full_at, u32 frac), for code that keeps the state
/// itself. While reservations are open, the data of algorithm/low_marks.h follows these.
inline constexpr std::uint32_t kTokenBucketBytes = 12;

inline TokenBucketState ReadTokenBucket(const State& state) noexcept {
  if (state.empty()) return {};
  return {Load<Nanos>(state.data), Load<std::uint32_t>(state.data + 8)};
}

inline void WriteTokenBucket(State& state, const TokenBucketState& bucket) noexcept {
  Store(state.data, bucket.full_at);
  Store(state.data + 8, bucket.frac);
  if (state.size < kTokenBucketBytes) state.size = kTokenBucketBytes;
}

namespace token_bucket {

/// ns + frac / quota.refill() nanoseconds.
struct Span {
  std::uint64_t ns = 0;
  std::uint64_t frac = 0;

  friend bool operator<(Span a, Span b) noexcept {
    return a.ns != b.ns ? a.ns < b.ns : a.frac < b.frac;
  }
};

inline Span Add(Span a, Span b, std::uint64_t n) noexcept {
  const std::uint64_t frac = a.frac + b.frac;
  const std::uint64_t carry = frac >= n ? 1 : 0;
  return {a.ns + b.ns + carry, frac - (carry != 0 ? n : 0)};
}

/// Requires a >= b.
inline Span Subtract(Span a, Span b, std::uint64_t n) noexcept {
  const std::uint64_t borrow = a.frac < b.frac ? 1 : 0;
  return {a.ns - b.ns - borrow, a.frac + (borrow != 0 ? n : 0) - b.frac};
}

/// Rounded up to whole nanoseconds, saturated at 292 years.
inline std::chrono::nanoseconds Ceil(Span span) noexcept {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t ns = span.ns + (span.frac != 0 ? 1 : 0);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(ns < kMost ? ns : kMost));
}

inline Span Window(const Quota& quota) noexcept {
  return {QuotaAccess::window(quota), QuotaAccess::window_frac(quota)};
}

/// The time in which `cost` permits flow in. Requires 0 < cost <= quota.limit().
inline Span TimeOf(const Quota& quota, std::int64_t cost) noexcept {
  if (cost == 1) return {QuotaAccess::step(quota), QuotaAccess::step_frac(quota)};
  const auto permits = static_cast<std::uint64_t>(cost);
  const std::uint64_t n = QuotaAccess::refill(quota);
  if (n == 1) return {permits * QuotaAccess::step(quota), 0};
  std::uint64_t product = 0;
  if (!__builtin_mul_overflow(permits, QuotaAccess::period(quota), &product)) {
    return {product / n, product % n};
  }
  const UInt128 wide = UInt128{permits} * QuotaAccess::period(quota);
  return {static_cast<std::uint64_t>(wide / n), static_cast<std::uint64_t>(wide % n)};
}

/// The whole permits that flow in during `span`. Requires span <= Window(quota).
inline std::int64_t PermitsIn(const Quota& quota, Span span) noexcept {
  const std::uint64_t n = QuotaAccess::refill(quota);
  const std::uint64_t p = QuotaAccess::period(quota);
  if (n == 1) return static_cast<std::int64_t>(span.ns / p);
  std::uint64_t product = 0;
  if (!__builtin_mul_overflow(span.ns, n, &product) &&
      !__builtin_add_overflow(product, span.frac, &product)) {
    return static_cast<std::int64_t>(product / p);
  }
  return static_cast<std::int64_t>((UInt128{span.ns} * n + span.frac) / p);
}

/// The time until the bucket is full. A fraction left by a quota with another refill is rounded up,
/// to the key's disadvantage. Unsigned, so a clock far behind the state cannot overflow it.
inline Span Debt(const Quota& quota, const TokenBucketState& state, Nanos now) noexcept {
  if (state.full_at < now) return {};
  const std::uint64_t ns =
      static_cast<std::uint64_t>(state.full_at) - static_cast<std::uint64_t>(now);
  if (state.frac >= QuotaAccess::refill(quota)) return {ns + 1, 0};
  return {ns, state.frac};
}

/// Fills in what a bucket with `debt` has left. Writes into the caller's decision, which is built
/// in its final place: copies of it would cost as much as the step.
inline void Describe(const Quota& quota, Span debt, Decision& decision) noexcept {
  const Span window = Window(quota);
  decision.limit = quota.limit();
  if (debt < window) {
    decision.remaining = PermitsIn(quota, Subtract(window, debt, QuotaAccess::refill(quota)));
  }
  decision.reset_after = Ceil(debt);
}

inline TokenBucketState FullAfter(Span debt, Nanos now) noexcept {
  return {static_cast<Nanos>(static_cast<std::uint64_t>(now) + debt.ns),
          static_cast<std::uint32_t>(debt.frac)};
}

/// A charge under a quota whose permits take whole nanoseconds, to a bucket without a fraction:
/// what Acquire does, without the fractions. Most charges are of this kind. Requires 0 < cost <=
/// quota.limit().
inline Decision AcquireWhole(const Quota& quota, TokenBucketState& state, Nanos now,
                             std::int64_t cost) noexcept {
  const std::uint64_t step = QuotaAccess::step(quota);
  const std::uint64_t window = QuotaAccess::window(quota);
  const std::uint64_t debt = Debt(quota, state, now).ns;
  const std::uint64_t charged = debt + static_cast<std::uint64_t>(cost) * step;
  Decision decision;
  decision.limit = quota.limit();
  if (charged <= window) [[likely]] {
    state.full_at = FullAfter({charged, 0}, now).full_at;
    decision.remaining = static_cast<std::int64_t>((window - charged) / step);
    decision.reset_after = std::chrono::nanoseconds(static_cast<std::int64_t>(charged));
  } else {
    decision.verdict = Verdict::kLimited;
    if (debt < window) decision.remaining = static_cast<std::int64_t>((window - debt) / step);
    decision.retry_after = Ceil({charged - window, 0});
    decision.reset_after = Ceil({debt, 0});
  }
  return decision;
}

}  // namespace token_bucket

/// Acquire for any quota, bucket and cost.
Decision AcquireAny(const Quota& quota, TokenBucketState& state, Nanos now,
                    std::int64_t cost) noexcept;

/// Charges `cost` (0 = only read) at `now`. A refused charge leaves `state` unchanged.
inline Decision Acquire(const Quota& quota, TokenBucketState& state, Nanos now,
                        std::int64_t cost) noexcept {
  const bool whole = QuotaAccess::refill(quota) == 1 && state.frac == 0;
  if (whole && cost > 0 && cost <= quota.limit()) [[likely]] {
    return token_bucket::AcquireWhole(quota, state, ClampTime(now), cost);
  }
  TokenBucketState any = state;  // a copy, so that the caller's state can stay in registers
  Decision decision = AcquireAny(quota, any, now, cost);
  state = any;
  return decision;
}

/// The time from which the state is equal to a fresh one.
inline Nanos FreshAt(const TokenBucketState& state) noexcept {
  return state.frac == 0 ? state.full_at : state.full_at + 1;
}

/// The verdict that Acquire would give, about the bucket as it is.
inline Decision Peek(const Quota& quota, TokenBucketState state, Nanos now,
                     std::int64_t cost) noexcept {
  const token_bucket::Span debt = token_bucket::Debt(quota, state, ClampTime(now));
  Decision decision = Acquire(quota, state, now, cost);
  if (decision.allowed()) token_bucket::Describe(quota, debt, decision);
  return decision;
}

/// The time in which `cost` permits flow in, but at most kMaxWindow. Requires cost > 0.
token_bucket::Span BoundedTimeOf(const Quota& quota, std::int64_t cost) noexcept;

/// Charges `cost` whether it fits or not, and returns the bucket's state: limited while more than a
/// whole bucket has to flow in. A bucket's debt is at most kMaxWindow of flow.
Decision Overdraw(const Quota& quota, TokenBucketState& state, Nanos now,
                  std::int64_t cost) noexcept;

/// Returns up to `cost`: a full bucket stays full.
Decision Refund(const Quota& quota, TokenBucketState& state, Nanos now, std::int64_t cost) noexcept;

/// The same on bytes, like the other algorithms.
namespace token_bucket {

std::uint32_t CapacityForAcquire(const Quota& quota, const State& state) noexcept;
Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept;
Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
/// Acquire of a charge that can be settled before `until`; the decision's lease is its stamp.
Decision Reserve(const Quota& quota, State& state, Nanos now, std::int64_t cost,
                 Nanos until) noexcept;
Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Nanos FreshAt(const State& state) noexcept;
bool Valid(std::span<const std::uint8_t> bytes) noexcept;

/// Reduces the bucket's debt by `freed`, which must not be zero.
void GiveBack(const Quota& quota, State& state, Nanos now, Span freed) noexcept;

}  // namespace token_bucket

}  // namespace weir::algorithm
