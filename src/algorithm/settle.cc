#include "algorithm/settle.h"

#include <algorithm>
#include <limits>

#include "algorithm/lease.h"
#include "algorithm/time_range.h"
#include "algorithm/token_bucket.h"

namespace weir::algorithm {
namespace {

using token_bucket::Span;

// Had the permits not been charged, the bucket would have been full at `stamp` less their time. Up
// to then all of that time is owed for nothing; from then on the bucket would have stood full, and
// of the debt only what is left until `stamp` is owed for nothing. Who was charged meanwhile would
// have kept the bucket from being full, which nobody has noted: so too little may be given back
// then. Only what others gave back meanwhile, which nobody has noted either, can make it too much:
// docs/design/reservations.md says by how much. The stamp was rounded up by less than a nanosecond.
Span Freed(Span whole, Span debt, Nanos now, Nanos stamp) noexcept {
  if (stamp <= now) return {};
  const Span left{static_cast<std::uint64_t>(stamp) - static_cast<std::uint64_t>(now), 0};
  if (!(left < whole)) return whole;
  if (!(left < debt)) return debt;
  return {left.ns - 1, 0};
}

void GiveBackToBucket(const Quota& quota, State& state, Nanos now, Nanos stamp,
                      std::int64_t count) noexcept {
  const Span debt = token_bucket::Debt(quota, ReadTokenBucket(state), now);
  const Span whole = token_bucket::TimeOf(quota, std::min(count, quota.limit()));
  const Span freed = Freed(whole, debt, now, stamp);
  if (!(Span{} < freed) || !(Span{} < debt)) return;
  const std::uint64_t n = QuotaAccess::refill(quota);
  const Span rest = freed < debt ? token_bucket::Subtract(debt, freed, n) : Span{};
  WriteTokenBucket(state, token_bucket::FullAfter(rest, now));
}

void GiveBack(const Quota& quota, State& state, Nanos now, Nanos stamp,
              std::int64_t count) noexcept {
  if (state.empty()) return;
  if (quota.algorithm() == Algorithm::kTokenBucket) {
    return GiveBackToBucket(quota, state, now, stamp, count);
  }
  Return(quota, state, now, stamp, count);
}

}  // namespace

Nanos StampOf(const Quota& quota, Nanos now, const Decision& decision) noexcept {
  if (quota.algorithm() == Algorithm::kConcurrency) return decision.lease;
  if (quota.algorithm() != Algorithm::kTokenBucket) return ChargedAt(quota, now, decision);
  Nanos full = 0;
  const bool far = __builtin_add_overflow(ClampTime(now), decision.reset_after.count(), &full);
  return far ? std::numeric_limits<Nanos>::max() : full;
}

Decision Settle(const Quota& quota, State& state, Nanos now, Nanos stamp,
                std::int64_t change) noexcept {
  now = ClampTime(now);
  if (quota.algorithm() == Algorithm::kConcurrency) {
    Release(quota, state, now, stamp);
    return Overdraw(quota, state, now, 0);
  }
  if (change > 0) return Overdraw(quota, state, now, change);
  if (change < 0) GiveBack(quota, state, now, stamp, -std::max(change, -kMaxLimit));
  return Overdraw(quota, state, now, 0);
}

}  // namespace weir::algorithm
