// A charge that is settled later: a token bucket then remembers more than fits into its slot. Kept
// separate from the other charges, where nanoseconds count.

#include "algorithm/settle.h"
#include "algorithm/state.h"
#include "algorithm/token_bucket.h"
#include "engine/slot_state.h"
#include "engine/table.h"

namespace weir::engine {

Decision Table::Reserve(const Located& at, std::string_view key, const Quota& quota,
                        std::int64_t cost, const Call& call) {
  const bool remembers = quota.algorithm() == Algorithm::kTokenBucket;
  if (!remembers || cost <= 0 || cost > quota.limit()) return Charge(at, key, quota, cost, call);
  Shard& shard = *at.shard;
  const Shard::Place place = BoxFor(at, key, quota, call);
  if (!place) {
    ++shard.counts.allowed;
    return algorithm::Peek(quota, algorithm::State{}, call.now, cost);
  }
  GrowFor(place, algorithm::CapacityForReserve(quota, place.box()->state()));
  algorithm::State state = place.box()->state();
  const Decision decision =
      algorithm::Reserve(quota, state, shard.Later(call.now), cost, call.reserved);
  ++(decision.allowed() ? shard.counts.allowed : shard.counts.limited);
  if (decision.allowed()) Settle(shard, place, state);
  return decision;
}

// Once in a box, a token bucket stays there until it is dropped: a key with a reservation is likely
// to get more of them.
Shard::Place Table::BoxFor(const Located& at, std::string_view key, const Quota& quota,
                           const Call& call) {
  const Shard::Place place = Find(at, quota.algorithm());
  if (place && place.boxed()) return place;
  const algorithm::State fresh;
  Box* box = Box::Make(quota.algorithm(), TextOf(key), algorithm::CapacityForReserve(quota, fresh));
  if (!place) return Create(*at.shard, at.fingerprint.Under(quota.algorithm()), box, call);
  algorithm::State state = box->state();
  const algorithm::TokenBucketState bucket = InlineState(place.slot());
  algorithm::WriteTokenBucket(state, bucket);
  box->set_size(state.size);
  at.shard->MoveInto(place, box);
  place.slot().extra = CoarseTime(algorithm::FreshAt(bucket));
  return place;
}

}  // namespace weir::engine
