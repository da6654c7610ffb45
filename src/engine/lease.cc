// The calls of Table that take permits in advance and return them.

#include "algorithm/lease.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "algorithm/settle.h"
#include "algorithm/token_bucket.h"
#include "engine/slot_state.h"
#include "engine/table.h"

namespace weir::engine {

namespace {

/// Runs a step for any state on the state in a slot.
template <typename Step>
auto RunInline(algorithm::TokenBucketState& bucket, Step step) {
  std::array<std::uint8_t, algorithm::kTokenBucketBytes> bytes{};
  algorithm::State state{bytes.data(), 0, algorithm::kTokenBucketBytes};
  algorithm::WriteTokenBucket(state, bucket);
  auto result = step(state);
  bucket = algorithm::ReadTokenBucket(state);
  return result;
}

}  // namespace

LeaseGrant Table::Lease(std::string_view key, const Quota& quota, std::int64_t want) {
  const Located at = Locate(key);
  const Nanos read = clock_->Now();
  const std::lock_guard hold(at.shard->lock);
  const Call call{read, {}};
  LeaseGrant grant;
  // Like algorithm::Lease, with the table's own charge as its step.
  std::int64_t cost = std::min(want, quota.limit());
  grant.decision = Charge(at, key, quota, std::max<std::int64_t>(cost, 0), call);
  for (; cost > 1 && !grant.decision.allowed();
       grant.decision = Charge(at, key, quota, cost, call)) {
    cost /= 2;
  }
  if (cost > 0 && grant.decision.allowed()) grant.granted = cost;
  grant.at = algorithm::ChargedAt(quota, at.shard->Later(read), grant.decision);
  return grant;
}

Decision Table::Return(std::string_view key, const Quota& quota, Nanos at_time,
                       std::int64_t count) {
  return Change(key, quota, [&](algorithm::State& state, Nanos now) {
    return algorithm::Return(quota, state, now, at_time, count);
  });
}

Decision Table::Adjust(std::string_view key, const Quota& quota, Nanos stamp, std::int64_t change) {
  if (change > 0 && quota.algorithm() != Algorithm::kConcurrency) {
    return Overdraw(key, &quota, change);
  }
  return Change(key, quota, [&](algorithm::State& state, Nanos now) {
    return algorithm::Settle(quota, state, now, stamp, change);
  });
}

/// Runs a step that needs no more room than the state has.
template <typename Step>
Decision Table::Change(std::string_view key, const Quota& quota, Step change) {
  const Located at = Locate(key);
  const Nanos read = clock_->Now();
  const std::lock_guard hold(at.shard->lock);
  const Nanos now = at.shard->Later(read);
  const Shard::Place place = Find(at, quota.algorithm());
  const auto step = [&](algorithm::State& state) { return change(state, now); };
  if (!place) {
    algorithm::State fresh;
    return step(fresh);
  }
  if (!place.boxed()) {
    algorithm::TokenBucketState bucket = InlineState(place.slot());
    const Decision decision = RunInline(bucket, step);
    SetInlineState(*at.shard, place, bucket);
    return decision;
  }
  algorithm::State state = place.box()->state();
  const Decision decision = step(state);
  Settle(*at.shard, place, state);
  return decision;
}

}  // namespace weir::engine
