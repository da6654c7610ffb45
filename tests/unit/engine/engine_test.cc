#include "weir/engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kStart = 1'700'000'000'000'000'000;

Quota Tokens(std::int64_t capacity, std::int64_t per_second) {
  return *Quota::TokenBucket(capacity, per_second);
}

/// Every test runs with fingerprints and with key texts: the answers must not differ.
class EngineTest : public testing::TestWithParam<KeyStorage> {
 protected:
  Engine Make(const Quota& quota, std::size_t max_keys = 1'000) {
    return Engine(quota, {.max_keys = max_keys, .keys = GetParam(), .clock = &clock_});
  }

  ManualClock clock_{kStart};
};

INSTANTIATE_TEST_SUITE_P(Keys, EngineTest,
                         testing::Values(KeyStorage::kFingerprint, KeyStorage::kText),
                         [](const auto& test) {
                           return test.param == KeyStorage::kText ? "Text" : "Fingerprint";
                         });

TEST_P(EngineTest, GrantsUpToTheLimitAndThenSaysWhenToComeBack) {
  Engine engine = Make(Tokens(3, 10));
  for (int left = 2; left >= 0; --left) {
    const Decision decision = engine.TryAcquire("user:1");
    EXPECT_TRUE(decision.allowed());
    EXPECT_EQ(decision.limit, 3);
    EXPECT_EQ(decision.remaining, left);
    EXPECT_EQ(decision.retry_after, 0ns);
    EXPECT_EQ(decision.reset_after, (3 - left) * 100ms);  // a permit takes 1 s / 10
  }
  const Decision refused = engine.TryAcquire("user:1");
  EXPECT_EQ(refused.verdict, Verdict::kLimited);
  EXPECT_EQ(refused.remaining, 0);
  EXPECT_EQ(refused.retry_after, 100ms);
  EXPECT_EQ(refused.reset_after, 300ms);
}

TEST_P(EngineTest, RetryAfterIsExactToTheNanosecond) {
  Engine engine = Make(Tokens(1, 3));  // a permit takes 333,333,333 1/3 ns
  ASSERT_TRUE(engine.TryAcquire("k").allowed());
  const Decision refused = engine.TryAcquire("k");
  EXPECT_EQ(refused.retry_after, 333'333'334ns);
  clock_.Advance(refused.retry_after - 1ns);
  EXPECT_FALSE(engine.TryAcquire("k").allowed());
  clock_.Advance(1ns);
  EXPECT_TRUE(engine.TryAcquire("k").allowed());
}

TEST_P(EngineTest, KeysDoNotShareALimit) {
  Engine engine = Make(Tokens(1, 1));
  for (int i = 0; i < 500; ++i) {
    EXPECT_TRUE(engine.TryAcquire("user:" + std::to_string(i)).allowed());
  }
  for (int i = 0; i < 500; ++i) {
    EXPECT_FALSE(engine.TryAcquire("user:" + std::to_string(i)).allowed());
  }
  EXPECT_EQ(engine.size(), 500U);
}

TEST_P(EngineTest, TakesAnyBytesAsAKey) {
  Engine engine = Make(Tokens(1, 1));
  const std::string long_key(100'000, 'x');
  const std::vector<std::string> keys = {
      "", std::string(1, '\0'), std::string(2, '\0'), "ключ", long_key, long_key + "y"};
  for (const std::string& key : keys) EXPECT_TRUE(engine.TryAcquire(key).allowed()) << key.size();
  for (const std::string& key : keys) EXPECT_FALSE(engine.TryAcquire(key).allowed()) << key.size();
}

TEST_P(EngineTest, ACostAboveTheLimitIsNever) {
  Engine engine = Make(Tokens(5, 1));
  const Decision decision = engine.TryAcquire("k", 6);
  EXPECT_EQ(decision.verdict, Verdict::kNever);
  EXPECT_EQ(decision.retry_after, 0ns);
  EXPECT_EQ(engine.size(), 0U);
  EXPECT_TRUE(engine.TryAcquire("k", 5).allowed());
}

TEST_P(EngineTest, ARefusedCallChargesNothing) {
  Engine engine = Make(Tokens(5, 1));
  ASSERT_TRUE(engine.TryAcquire("k", 3).allowed());
  EXPECT_FALSE(engine.TryAcquire("k", 3).allowed());
  EXPECT_TRUE(engine.TryAcquire("k", 2).allowed());
}

TEST_P(EngineTest, ACostOfZeroOrLessOnlyLooks) {
  Engine engine = Make(Tokens(5, 1));
  EXPECT_EQ(engine.TryAcquire("k", 0).remaining, 5);
  EXPECT_EQ(engine.TryAcquire("k", -7).remaining, 5);
  EXPECT_EQ(engine.size(), 0U);
  ASSERT_TRUE(engine.TryAcquire("k", 4).allowed());
  EXPECT_EQ(engine.TryAcquire("k", 0).remaining, 1);
  EXPECT_EQ(engine.stats().hits, 1U);
}

TEST_P(EngineTest, PeekGivesTheVerdictAndChargesNothing) {
  for (const Quota& quota : {Tokens(5, 1), *Quota::FixedWindow(5, 1s), *Quota::SlidingLog(5, 1s),
                             *Quota::SlidingCounter(5, 1s, 4), *Quota::Concurrency(5, 1s),
                             *Quota::AnchoredWindow(5, 1s)}) {
    Engine engine = Make(quota);
    EXPECT_EQ(engine.Peek("k", 5).remaining, 5) << quota.ToString();
    for (const std::int64_t cost : {1, 3, 2, 6}) {
      const Decision peeked = engine.Peek("k", cost);
      EXPECT_EQ(peeked, engine.Peek("k", cost)) << quota.ToString();
      const Decision made = engine.TryAcquire("k", cost);
      EXPECT_EQ(peeked.verdict, made.verdict) << quota.ToString();
      EXPECT_EQ(peeked.retry_after, made.retry_after) << quota.ToString();
      EXPECT_EQ(peeked.remaining, made.remaining + (made.allowed() ? cost : 0)) << quota.ToString();
    }
  }
}

TEST_P(EngineTest, RefundGivesBackButNeverMoreThanTheLimit) {
  for (const Quota& quota : {Tokens(5, 1), *Quota::FixedWindow(5, 1s), *Quota::SlidingLog(5, 1s),
                             *Quota::SlidingCounter(5, 1s, 4), *Quota::AnchoredWindow(5, 1s)}) {
    Engine engine = Make(quota);
    EXPECT_EQ(engine.Refund("k", 3).remaining, 5) << quota.ToString();
    ASSERT_TRUE(engine.TryAcquire("k", 5).allowed());
    EXPECT_EQ(engine.Refund("k", 2).remaining, 2) << quota.ToString();
    EXPECT_EQ(engine.Refund("k", 100).remaining, 5) << quota.ToString();
    EXPECT_TRUE(engine.TryAcquire("k", 5).allowed()) << quota.ToString();
    EXPECT_FALSE(engine.TryAcquire("k", 1).allowed()) << quota.ToString();
  }
}

TEST_P(EngineTest, OverdrawAlwaysCountsAndLeavesADebt) {
  for (const Quota& quota : {Tokens(5, 1), *Quota::FixedWindow(5, 1s), *Quota::SlidingLog(5, 1s),
                             *Quota::SlidingCounter(5, 1s, 4), *Quota::AnchoredWindow(5, 1s)}) {
    Engine engine = Make(quota);
    EXPECT_TRUE(engine.Overdraw("k", 0).allowed()) << quota.ToString();
    EXPECT_EQ(engine.size(), 0U) << "a look leaves nothing";
    EXPECT_EQ(engine.Overdraw("k", 3).remaining, 2) << quota.ToString();
    EXPECT_TRUE(engine.Overdraw("k", 2).allowed()) << quota.ToString();
    const Decision debt = engine.Overdraw("k", 4);
    EXPECT_EQ(debt.verdict, Verdict::kLimited) << quota.ToString();
    EXPECT_GT(debt.retry_after.count(), 0) << quota.ToString();
    EXPECT_EQ(engine.Overdraw("k", 0), debt) << quota.ToString();
    EXPECT_FALSE(engine.TryAcquire("k", 1).allowed()) << quota.ToString();
    EXPECT_EQ(engine.Refund("k", 4).remaining, 0) << quota.ToString();
    EXPECT_TRUE(engine.Overdraw("k", 0).allowed()) << quota.ToString();
  }
}

TEST_P(EngineTest, ReservesAnEstimateAndSettlesItOnce) {
  for (const Quota& quota : {Tokens(50, 1), *Quota::FixedWindow(50, 1h), *Quota::SlidingLog(50, 1h),
                             *Quota::SlidingCounter(50, 1h, 4), *Quota::AnchoredWindow(50, 1h)}) {
    Engine engine = Make(quota);
    const Reservation reserved = engine.Reserve("k", quota, 30, 1min);
    EXPECT_EQ(reserved.decision.remaining, 20) << quota.ToString();
    EXPECT_FALSE(engine.Reserve("k", quota, 30, 1min).decision.allowed()) << quota.ToString();
    EXPECT_TRUE(engine.Settle(reserved, 10)) << quota.ToString();
    EXPECT_EQ(engine.Peek("k", quota).remaining, 40) << quota.ToString();
    EXPECT_FALSE(engine.Settle(reserved, 0)) << quota.ToString();
    const Reservation more = engine.Reserve("k", quota, 10, 1min);
    EXPECT_TRUE(engine.Settle(more, 60)) << quota.ToString();
    EXPECT_FALSE(engine.Overdraw("k", quota, 0).allowed()) << quota.ToString();
  }
}

TEST_P(EngineTest, NothingIsChargedToAConcurrencyQuotaByOverdraw) {
  Engine engine = Make(*Quota::Concurrency(5, 1s));
  EXPECT_EQ(engine.Overdraw("k", 9).remaining, 5);
  EXPECT_EQ(engine.size(), 0U);
}

TEST_P(EngineTest, ResetForgetsTheKeyUnderEveryAlgorithm) {
  Engine engine = Make(Tokens(1, 1));
  const Quota log = *Quota::SlidingLog(1, 1h);
  ASSERT_TRUE(engine.TryAcquire("k").allowed());
  ASSERT_TRUE(engine.TryAcquire("k", log).allowed());
  ASSERT_TRUE(engine.TryAcquire("other").allowed());
  EXPECT_EQ(engine.size(), 3U);
  engine.Reset("k");
  EXPECT_EQ(engine.size(), 1U);
  EXPECT_TRUE(engine.TryAcquire("k").allowed());
  EXPECT_TRUE(engine.TryAcquire("k", log).allowed());
  EXPECT_FALSE(engine.TryAcquire("other").allowed());
}

TEST_P(EngineTest, AQuotaPerCallAndAQuotaPerKeyOverrideTheDefault) {
  Engine engine = Make(Tokens(1, 1));
  EXPECT_EQ(engine.TryAcquire("vip", Tokens(100, 1)).limit, 100);
  engine.SetQuota("gold", Tokens(10, 1));
  EXPECT_EQ(engine.TryAcquire("gold").limit, 10);
  EXPECT_EQ(engine.TryAcquire("gold", Tokens(3, 1)).limit, 3);
  EXPECT_EQ(engine.TryAcquire("plain").limit, 1);
  engine.ClearQuota("gold");
  EXPECT_EQ(engine.TryAcquire("gold").limit, 1);
}

TEST_P(EngineTest, ChangingAKeysQuotaKeepsItsCharges) {
  Engine engine = Make(Tokens(10, 1));
  ASSERT_TRUE(engine.TryAcquire("k", 10).allowed());  // full again in 10 s
  engine.SetQuota("k", Tokens(20, 1));                // 20 s of credit, 10 of them used
  EXPECT_EQ(engine.Peek("k", 0).remaining, 10);
}

TEST_P(EngineTest, AlgorithmsOfOneKeyAreLimitedApart) {
  Engine engine = Make(Tokens(1, 1));
  ASSERT_TRUE(engine.TryAcquire("k").allowed());
  EXPECT_TRUE(engine.TryAcquire("k", *Quota::FixedWindow(1, 1s)).allowed());
  EXPECT_TRUE(engine.TryAcquire("k", *Quota::Concurrency(1, 1s)).allowed());
  EXPECT_FALSE(engine.TryAcquire("k").allowed());
}

TEST_P(EngineTest, ALateOrRepeatedReleaseFreesNobodyElsesPermit) {
  Engine engine = Make(*Quota::Concurrency(2, 10s));
  const Decision first = engine.TryAcquire("k");
  const Decision second = engine.TryAcquire("k");
  ASSERT_TRUE(first.allowed() && second.allowed());
  EXPECT_NE(first.lease, second.lease);
  EXPECT_FALSE(engine.TryAcquire("k").allowed());
  EXPECT_TRUE(engine.Release("k", first.lease));
  EXPECT_FALSE(engine.Release("k", first.lease));  // repeated
  clock_.Advance(5s);
  const Decision third = engine.TryAcquire("k");
  ASSERT_TRUE(third.allowed());
  EXPECT_FALSE(engine.TryAcquire("k").allowed());
  clock_.Advance(5s + 1ns);  // the second lease (granted in the first nanosecond) has expired
  ASSERT_TRUE(engine.TryAcquire("k").allowed());
  EXPECT_FALSE(engine.Release("k", second.lease));  // late
  EXPECT_FALSE(engine.TryAcquire("k").allowed());
  EXPECT_FALSE(engine.Release("nobody", third.lease));
}

TEST_P(EngineTest, ABatchAnswersInOrderAndEachForItself) {
  Engine engine = Make(Tokens(2, 1));
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back("k" + std::to_string(i / 4));  // each key four times
  std::vector<Ask> asks;
  for (const std::string& key : keys) asks.push_back({.key = key});
  const Quota wide = Tokens(50, 1);
  asks.push_back({.key = "k0", .cost = 40, .quota = &wide});
  std::vector<Decision> decisions(asks.size());
  engine.TryAcquireBatch(asks, decisions);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(decisions[i].allowed(), i % 4 < 2) << i;  // a limit of 2
  }
  // k0 has used 2 s of credit: 48 of 50 are left, 40 fit.
  EXPECT_TRUE(decisions[100].allowed());
  EXPECT_EQ(decisions[100].remaining, 8);
  EXPECT_EQ(engine.stats().hits, 101U);
  EXPECT_EQ(engine.stats().allowed, 51U);
  EXPECT_EQ(engine.stats().limited, 50U);
}

TEST_P(EngineTest, AllOrNothingChargesAllOrNothing) {
  Engine engine = Make(Tokens(10, 1));
  const Quota log = *Quota::SlidingLog(3, 1min);
  const std::vector<Ask> asks = {
      {.key = "user:1"}, {.key = "route:/pay", .cost = 2, .quota = &log}, {.key = "ip:::1"}};
  std::vector<Decision> decisions(3);
  EXPECT_TRUE(engine.TryAcquireAll(asks, decisions));
  EXPECT_EQ(decisions[0].remaining, 9);
  EXPECT_EQ(decisions[1].remaining, 1);

  EXPECT_FALSE(engine.TryAcquireAll(asks, decisions));
  EXPECT_TRUE(decisions[0].allowed());
  EXPECT_EQ(decisions[1].verdict, Verdict::kLimited);
  EXPECT_TRUE(decisions[2].allowed());
  EXPECT_EQ(engine.Peek("user:1", 0).remaining, 9);
  EXPECT_EQ(engine.Peek("ip:::1", 0).remaining, 9);
  EXPECT_EQ(engine.Peek("route:/pay", log, 0).remaining, 1);
  EXPECT_EQ(engine.stats().hits, 6U);
  EXPECT_EQ(engine.stats().allowed, 3U);
}

TEST_P(EngineTest, ARefusedGroupLeavesNoNewKeysBehind) {
  Engine engine = Make(Tokens(10, 1));
  const std::vector<Ask> asks = {{.key = "new"}, {.key = "k", .cost = 11}};
  std::vector<Decision> decisions(2);
  EXPECT_FALSE(engine.TryAcquireAll(asks, decisions));
  EXPECT_EQ(decisions[1].verdict, Verdict::kNever);
  EXPECT_EQ(engine.size(), 0U);
  EXPECT_EQ(engine.stats().created, 0U);
}

TEST_P(EngineTest, AGroupCountsTheSameKeyTwice) {
  Engine engine = Make(Tokens(5, 1));
  const std::vector<Ask> asks = {{.key = "k", .cost = 3}, {.key = "k", .cost = 3}};
  std::vector<Decision> decisions(2);
  EXPECT_FALSE(engine.TryAcquireAll(asks, decisions));
  EXPECT_TRUE(decisions[0].allowed());
  EXPECT_FALSE(decisions[1].allowed());
  EXPECT_EQ(engine.Peek("k", 0).remaining, 5);
}

TEST_P(EngineTest, ClearForgetsChargesAndKeepsQuotas) {
  Engine engine = Make(Tokens(1, 1));
  engine.SetQuota("gold", Tokens(7, 1));
  ASSERT_TRUE(engine.TryAcquire("gold", 7).allowed());
  ASSERT_TRUE(engine.TryAcquire("k", *Quota::SlidingLog(1, 1s)).allowed());
  engine.Clear();
  EXPECT_EQ(engine.size(), 0U);
  EXPECT_EQ(engine.Peek("gold", 0).remaining, 7);
}

TEST_P(EngineTest, SweepDropsExactlyTheKeysThatAreAsGoodAsNew) {
  Engine engine = Make(Tokens(10, 1));
  const Quota log = *Quota::SlidingLog(10, 3s);
  (void)engine.TryAcquire("short", 1);  // full again after 1 s
  (void)engine.TryAcquire("long", 5);   // after 5 s
  (void)engine.TryAcquire("log", log);  // after 3 s
  clock_.Advance(1s - 1ns);
  EXPECT_EQ(engine.Sweep(), 0U);
  clock_.Advance(1ns);
  EXPECT_EQ(engine.Sweep(), 1U);
  clock_.Advance(2s - 1ns);
  EXPECT_EQ(engine.Sweep(), 0U);
  clock_.Advance(1ns);
  EXPECT_EQ(engine.Sweep(), 1U);
  EXPECT_EQ(engine.size(), 1U);
  EXPECT_EQ(engine.Peek("long", 0).remaining, 8);  // 3 s of 5 have passed
}

TEST_P(EngineTest, VisitShowsEveryKeyOnce) {
  Engine engine = Make(Tokens(10, 1));
  for (int i = 0; i < 100; ++i) (void)engine.TryAcquire("k" + std::to_string(i));
  std::vector<std::string> seen;
  engine.Visit([&](const KeyView& view) { seen.emplace_back(view.key); });
  EXPECT_EQ(seen.size(), 100U);
  if (GetParam() == KeyStorage::kText) {
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
    EXPECT_EQ(seen.front(), "k0");
  }
}

TEST_P(EngineTest, AClockThatGoesBackGrantsNothingMore) {
  for (const Quota& quota : {Tokens(5, 1), *Quota::FixedWindow(5, 1s), *Quota::SlidingLog(5, 1s),
                             *Quota::SlidingCounter(5, 1s, 4), *Quota::Concurrency(5, 1s),
                             *Quota::AnchoredWindow(5, 1s)}) {
    clock_.Set(kStart);
    Engine engine = Make(quota);
    ASSERT_TRUE(engine.TryAcquire("k", 5).allowed());
    for (const auto back : {1ns, 999ns, 1'000'000'000ns, 3'600'000'000'000ns}) {
      clock_.Set(kStart - back.count());
      EXPECT_FALSE(engine.TryAcquire("k").allowed()) << quota.ToString();
    }
  }
}

}  // namespace
}  // namespace weir
