#include "algorithm/settle.h"

#include <algorithm>

#include "algorithm/lease.h"
#include "algorithm/low_marks.h"
#include "algorithm/time_range.h"
#include "algorithm/token_bucket.h"

namespace weir::algorithm {
namespace {

using token_bucket::Span;

// Had the permits not been charged, the debt would be lower by their time, or by its lowest value
// since: below that the bucket would have been full.
void GiveBackToBucket(const Quota& quota, State& state, Nanos now, Nanos stamp,
                      std::int64_t count) noexcept {
  const Span whole = token_bucket::TimeOf(quota, std::min(count, quota.limit()));
  const Span freed = std::min(whole, low_marks::LowSince(state, now, stamp));
  const Span debt = token_bucket::Debt(quota, ReadTokenBucket(state), now);
  if (!(Span{} < freed) || !(Span{} < debt)) return;
  const std::uint64_t n = QuotaAccess::refill(quota);
  const Span rest = freed < debt ? token_bucket::Subtract(debt, freed, n) : Span{};
  WriteTokenBucket(state, token_bucket::FullAfter(rest, now));
  low_marks::Free(state, now, stamp, freed, rest);
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

std::uint32_t CapacityForReserve(const Quota& quota, const State& state) noexcept {
  if (quota.algorithm() == Algorithm::kTokenBucket) return low_marks::CapacityForAdd(state);
  return CapacityForAcquire(quota, state);
}

Decision Reserve(const Quota& quota, State& state, Nanos now, std::int64_t cost,
                 Nanos lasts) noexcept {
  if (quota.algorithm() != Algorithm::kTokenBucket) return Acquire(quota, state, now, cost);
  const Nanos until = ClampTime(now) + std::clamp<Nanos>(lasts, 0, kMaxWindow.count());
  return token_bucket::Reserve(quota, state, now, cost, until);
}

Nanos StampOf(const Quota& quota, Nanos now, const Decision& decision) noexcept {
  if (quota.algorithm() == Algorithm::kConcurrency) return decision.lease;
  if (quota.algorithm() == Algorithm::kTokenBucket) return decision.lease;
  return ChargedAt(quota, now, decision);
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
