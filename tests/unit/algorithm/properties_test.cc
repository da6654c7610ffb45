// Every algorithm against its definition (reference.h), step by step, on random traces.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "algorithm/time_range.h"
#include "unit/algorithm/generators.h"
#include "unit/algorithm/trace.h"

namespace weir::algorithm {
namespace {

using std::chrono::nanoseconds;

// One long trace in this many of a hundred cases: they take ten times as long under a sanitizer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kLongTraceEvery = 50;
#else
constexpr std::uint64_t kLongTraceEvery = 5;
#endif

// A denied request is denied one nanosecond before retry_after and granted at it.
void CheckRetry(const Key& key, const Decision& decision, Nanos now, std::int64_t cost) {
  const Int128 then = Int128{now} + decision.retry_after.count();
  if (decision.verdict != Verdict::kLimited || then > kLatest) return;
  RC_ASSERT(decision.retry_after > nanoseconds(0));
  RC_ASSERT(!key.Peek(static_cast<Nanos>(then) - 1, cost).allowed());
  RC_ASSERT(key.Peek(static_cast<Nanos>(then), cost).allowed());
}

// From FreshAt on the key answers like one that was never used.
void CheckFresh(const Quota& quota, const Key& key, const Decision& decision, Nanos now) {
  if (decision.reset_after == nanoseconds(0) || key.FreshAt() > kLatest) return;
  const Nanos fresh_at = key.FreshAt();
  RC_ASSERT(fresh_at >= now + decision.reset_after.count());
  RC_ASSERT(key.Peek(now + decision.reset_after.count(), 0).remaining == quota.limit());
  RC_ASSERT(key.Peek(now + decision.reset_after.count() - 1, 0).reset_after == nanoseconds(1));
  for (const std::int64_t cost : {std::int64_t{0}, std::int64_t{1}, quota.limit()}) {
    RC_ASSERT(key.Peek(fresh_at, cost) == Key(quota).Peek(fresh_at, cost));
  }
}

void CheckAcquire(const Quota& quota, Key& key, Reference& reference, Player& player, Nanos now,
                  std::int64_t cost) {
  const std::vector<std::uint8_t> before = key.Bytes();
  const Decision expected = reference.Acquire(now, cost);
  const Decision peeked = key.Peek(now, cost);
  RC_ASSERT(key.Bytes() == before);
  const Decision decision = key.Acquire(now, cost);
  RC_ASSERT(decision == expected);
  RC_ASSERT(peeked.verdict == decision.verdict);
  if (!decision.allowed() || cost == 0) {
    RC_ASSERT(key.Bytes() == before);
    RC_ASSERT(peeked == decision);
  }
  CheckRetry(key, decision, now, cost);
  if (player.Heard(decision); cost % 4 == 1) CheckFresh(quota, key, decision, now);
}

// Any cost is counted; and the key is in debt until exactly retry_after.
void CheckOverdraw(Key& key, Reference& reference, Player& player, Nanos now, std::int64_t cost) {
  const Decision expected = reference.Overdraw(now, cost);
  const Decision decision = key.Overdraw(now, cost);
  RC_ASSERT(decision == expected);
  RC_ASSERT(decision.verdict != Verdict::kNever);
  const std::vector<std::uint8_t> after = key.Bytes();
  RC_ASSERT(key.Overdraw(now, 0) == decision);
  const Int128 then = Int128{now} + decision.retry_after.count();
  if (!decision.allowed() && then <= kLatest) {
    RC_ASSERT(!key.Overdraw(static_cast<Nanos>(then) - 1, 0).allowed());
    RC_ASSERT(key.Overdraw(static_cast<Nanos>(then), 0).allowed());
    RC_ASSERT(!key.Peek(now, 1).allowed());
  }
  RC_ASSERT(key.Bytes() == after);
  player.Heard(decision);
}

void CheckTrace(const Quota& quota, const Trace& trace) {
  Key key(quota);
  const auto reference = Reference::For(quota);
  Player player(quota, trace.start);
  std::size_t count = 0;
  for (const Step& step : trace.steps) {
    const Nanos now = player.Move(step);
    if (step.action == Action::kAcquire) {
      CheckAcquire(quota, key, *reference, player, now, player.Cost(step));
    } else if (step.action == Action::kOverdraw) {
      const auto times = static_cast<std::int64_t>(step.dice % 8);
      CheckOverdraw(key, *reference, player, now, player.Cost(step) * times);
    } else if (step.action == Action::kRefund) {
      const Decision expected = reference->Refund(now, player.Cost(step));
      RC_ASSERT(key.Refund(now, player.Cost(step)) == expected);
    } else {
      const bool expected = reference->Release(now, player.Lease(step));
      RC_ASSERT(key.Release(now, player.Lease(step)) == expected);
    }
    if (trace.steps.size() < 200 || ++count % 64 == 0) RC_ASSERT(key.Valid());
  }
}

void ExpectAsDefined(const rc::Gen<Quota>& quotas) {
  EXPECT_TRUE(rc::check("short traces, which shrink well",
                        [&quotas] { CheckTrace(*quotas, *AnyTrace()); }));
  EXPECT_TRUE(rc::check("traces of 10,000 steps", [&quotas] {
    const Quota quota = *rc::gen::noShrink(quotas);
    const auto seed = *rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>());
    if (seed % kLongTraceEvery == 0) CheckTrace(quota, LongTrace(seed));
  }));
}

TEST(Properties, TokenBucketIsAsDefined) { ExpectAsDefined(AnyTokenBucket()); }
TEST(Properties, FixedWindowIsAsDefined) { ExpectAsDefined(AnyFixedWindow()); }
TEST(Properties, SlidingLogIsAsDefined) { ExpectAsDefined(AnySlidingLog()); }
TEST(Properties, SlidingCounterIsAsDefined) { ExpectAsDefined(AnySlidingCounter()); }
TEST(Properties, ConcurrencyIsAsDefined) { ExpectAsDefined(AnyConcurrency()); }
TEST(Properties, AnchoredWindowIsAsDefined) { ExpectAsDefined(AnyAnchoredWindow()); }

}  // namespace
}  // namespace weir::algorithm
