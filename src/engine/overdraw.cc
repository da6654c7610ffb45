// Table::Overdraw: a charge that always counts. Kept separate from the other charges, where
// nanoseconds count.

#include <mutex>

#include "algorithm/state.h"
#include "algorithm/token_bucket.h"
#include "engine/slot_state.h"
#include "engine/table.h"

namespace weir::engine {

Decision Table::Overdraw(std::string_view key, const Quota* given, std::int64_t cost) {
  if (cost < 0) return Peek(key, given, cost);
  const Located at = Locate(key);
  const Call call{clock_->Now(), {}};
  const std::lock_guard hold(at.shard->lock);
  const Quota& quota = given != nullptr ? *given : OwnQuotaOf(at);
  const bool counts = cost > 0 && quota.algorithm() != Algorithm::kConcurrency;
  if (counts) ++at.shard->counts.allowed;
  const Shard::Place place = Find(at, quota.algorithm());
  if (quota.algorithm() == Algorithm::kTokenBucket && !(place && place.boxed())) {
    return OverdrawInline(at, place, key, quota, cost, call);
  }
  return OverdrawBoxed(at, key, quota, counts ? cost : 0, call);
}

Decision Table::OverdrawInline(const Located& at, Shard::Place place, std::string_view key,
                               const Quota& quota, std::int64_t cost, const Call& call) {
  algorithm::TokenBucketState state;
  if (place) state = InlineState(place.slot());
  const Decision decision = algorithm::Overdraw(quota, state, at.shard->Later(call.now), cost);
  if (cost <= 0) return decision;
  if (!place) {
    place = CreateInline(*at.shard, at.fingerprint.Under(Algorithm::kTokenBucket), key, call);
  }
  if (place) SetInlineState(*at.shard, place, state);
  return decision;
}

Decision Table::OverdrawBoxed(const Located& at, std::string_view key, const Quota& quota,
                              std::int64_t cost, const Call& call) {
  const Nanos now = at.shard->Later(call.now);
  Shard::Place place = Find(at, quota.algorithm());
  if (!place) {
    algorithm::State fresh;
    if (cost <= 0) return algorithm::Overdraw(quota, fresh, now, 0);
    Box* box =
        Box::Make(quota.algorithm(), TextOf(key), algorithm::CapacityForAcquire(quota, fresh));
    place = Create(*at.shard, at.fingerprint.Under(quota.algorithm()), box, call);
    if (!place) return algorithm::Overdraw(quota, fresh, now, 0);
  }
  GrowFor(place, algorithm::CapacityForAcquire(quota, place.box()->state()));
  algorithm::State state = place.box()->state();
  const Decision decision = algorithm::Overdraw(quota, state, now, cost);
  if (cost > 0) Settle(*at.shard, place, state);
  return decision;
}

}  // namespace weir::engine
