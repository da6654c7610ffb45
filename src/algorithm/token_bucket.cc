#include "algorithm/token_bucket.h"

#include <algorithm>

namespace weir::algorithm {

Decision Refund(const Quota& quota, TokenBucketState& state, Nanos now,
                std::int64_t cost) noexcept {
  using namespace token_bucket;  // NOLINT(google-build-using-namespace): one function's vocabulary
  now = ClampTime(now);
  Span debt = Debt(quota, state, now);
  if (cost > 0 && Span{} < debt) {
    const Span back = TimeOf(quota, std::min(cost, quota.limit()));
    debt = back < debt ? Subtract(debt, back, QuotaAccess::refill(quota)) : Span{};
    state = FullAfter(debt, now);
  }
  Decision decision;
  Describe(quota, debt, decision);
  return decision;
}

}  // namespace weir::algorithm
