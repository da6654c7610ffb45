#include "protocol/grpc/quota_bucket.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <vector>

#include "algorithm/state.h"
#include "limiter/assignments.h"
#include "weir/quota.h"

namespace weir::grpc {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
using Seconds = std::chrono::seconds;

QuotaFacts Limited(std::int64_t per_second, std::int64_t remaining) {
  return {.limited = true, .per_second = per_second, .remaining = remaining};
}

/// Asks and is granted everything; returns what was charged.
std::int64_t Grant(QuotaBucket& bucket, Nanos now, const QuotaFacts& facts) {
  auto ask = bucket.Begin(now);
  std::int64_t charged = ask.cost;
  while (const auto next = bucket.OnAnswer(now, facts, true)) charged += next->cost;
  bucket.Pushed(now);
  return charged;
}

TEST(QuotaBucket, AsksWhatAppliesBeforeItCharges) {
  QuotaBucket bucket(0);
  EXPECT_EQ(bucket.Begin(kSecond).cost, 0);
  const auto ask = bucket.OnAnswer(kSecond, Limited(100, 1000), true);
  ASSERT_TRUE(ask.has_value());
  EXPECT_EQ(ask->rate, 100);
  EXPECT_EQ(ask->cost, 100 + 125);  // a full bucket, and what flows in until after the next push
}

TEST(QuotaBucket, WhatNoPolicyLimitsIsNotCharged) {
  QuotaBucket bucket(0);
  EXPECT_EQ(Grant(bucket, kSecond, {}), 0);
  EXPECT_EQ(bucket.rate(), limiter::kUnlimitedPerSecond);
  EXPECT_EQ(bucket.Begin(2 * kSecond).cost, 0);
  EXPECT_EQ(bucket.Abandon(2 * kSecond), 0);
}

TEST(QuotaBucket, TheSameAssignmentCostsWhatFlowsIn) {
  QuotaBucket bucket(0);
  Grant(bucket, kSecond, Limited(100, 1000));
  for (Nanos at = 2; at < 10; ++at) EXPECT_EQ(Grant(bucket, at * kSecond, Limited(100, 500)), 100);
}

TEST(QuotaBucket, ALatePushIsPaidForAfterwards) {
  QuotaBucket bucket(0);
  Grant(bucket, kSecond, Limited(100, 1000));
  EXPECT_EQ(Grant(bucket, 3 * kSecond, Limited(100, 500)), 200);
}

TEST(QuotaBucket, AfterAnExpiryTheBucketIsNewAndPaidInFull) {
  QuotaBucket bucket(0);
  Grant(bucket, kSecond, Limited(100, 1000));
  // 3.25 s of it were spent without a push, and 1.25 s were paid for.
  EXPECT_EQ(Grant(bucket, 60 * kSecond, Limited(100, 500)), 200 + 100 + 125);
}

TEST(QuotaBucket, MoreIsChargedAsFarAsItIsMore) {
  QuotaBucket bucket(0);
  Grant(bucket, kSecond, Limited(1600, 400));  // a quarter of what is left: 100
  ASSERT_EQ(bucket.rate(), 100);
  EXPECT_EQ(Grant(bucket, 2 * kSecond, Limited(1600, 400)), 100 + 100 + 125);
  EXPECT_EQ(bucket.rate(), 200);
}

TEST(QuotaBucket, AsksForLessAFewTimesAndThenForNothing) {
  QuotaBucket bucket(0);
  bucket.Begin(kSecond);
  std::vector<std::int64_t> rates;
  // There seems to be plenty, but all of it is refused: somebody else is quicker.
  while (const auto ask = bucket.OnAnswer(kSecond, Limited(1000, 100'000), false)) {
    rates.push_back(ask->rate);
  }
  EXPECT_EQ(rates, (std::vector<std::int64_t>{1000, 500, 250, 125}));
  EXPECT_EQ(bucket.rate(), 0);
}

TEST(QuotaBucket, WhatWasNotSentIsNotSpent) {
  QuotaBucket bucket(0);
  bucket.Begin(kSecond);
  const auto ask = bucket.OnAnswer(kSecond, Limited(100, 1000), true);
  ASSERT_TRUE(ask.has_value());
  EXPECT_EQ(ask->cost, 225);
  EXPECT_FALSE(bucket.OnAnswer(kSecond, Limited(100, 1000), true));
  // The 125 that would have flowed in are still paid for; the full bucket is a new one.
  EXPECT_EQ(bucket.Begin(2 * kSecond).cost, 100);
}

TEST(QuotaBucket, DemandLowersWhatIsAssigned) {
  QuotaBucket bucket(0);
  Grant(bucket, kSecond, Limited(100, 1000));
  bucket.Report(2 * kSecond, Seconds(5), 35);  // 7 a second, and one for the rest
  EXPECT_EQ(Grant(bucket, 2 * kSecond, Limited(100, 1000)), 0);
  EXPECT_EQ(bucket.rate(), 12);
}

TEST(QuotaBucket, AReportOfLessThanASecondTellsNoDemand) {
  QuotaBucket bucket(0);
  bucket.Report(kSecond, Seconds(0), 1);
  EXPECT_EQ(bucket.demand(), 0);
}

TEST(QuotaBucket, AfterARefusalItTakesWhatIsLeft) {
  QuotaBucket bucket(0);
  Grant(bucket, kSecond, Limited(100, 1000));
  EXPECT_EQ(bucket.Begin(2 * kSecond).cost, 100);
  const auto less = bucket.OnAnswer(2 * kSecond, Limited(100, 50), false);
  ASSERT_TRUE(less.has_value());
  EXPECT_EQ(less->rate, 40);
  EXPECT_LE(less->cost, 50);
  EXPECT_FALSE(bucket.OnAnswer(2 * kSecond, Limited(100, 0), true).has_value());
  EXPECT_EQ(bucket.rate(), 40);
}

TEST(QuotaBucket, WithNothingLeftItRefusesAndAsksAgainForLittle) {
  QuotaBucket bucket(0);
  Grant(bucket, kSecond, Limited(100, 1000));
  bucket.Begin(2 * kSecond);
  EXPECT_FALSE(bucket.OnAnswer(2 * kSecond, Limited(100, 0), false).has_value());
  EXPECT_EQ(bucket.rate(), 0);
  bucket.Pushed(2 * kSecond);
  const auto ask = bucket.Begin(3 * kSecond);
  EXPECT_EQ(ask.rate, 1);
  EXPECT_EQ(ask.cost, 1 + 2);
}

TEST(QuotaBucket, RefusedChargesThatCountAreMadeButOnce) {
  QuotaBucket bucket(0);
  QuotaFacts facts = Limited(100, 1000);
  facts.single_attempt = true;
  Grant(bucket, kSecond, facts);
  bucket.Begin(2 * kSecond);
  facts.remaining = 50;
  EXPECT_FALSE(bucket.OnAnswer(2 * kSecond, facts, false).has_value());
  EXPECT_EQ(bucket.rate(), 0);
}

TEST(QuotaBucket, RequestsInFlightCannotBeAssigned) {
  QuotaBucket bucket(0);
  QuotaFacts facts = Limited(100, 1000);
  facts.assignable = false;
  EXPECT_EQ(Grant(bucket, kSecond, facts), 0);
  EXPECT_EQ(bucket.rate(), 0);
  EXPECT_EQ(Grant(bucket, 2 * kSecond, facts), 0);
}

TEST(QuotaBucket, WhatACutOffEnvoyMaySpendIsOwed) {
  QuotaBucket bucket(0);
  Grant(bucket, kSecond, Limited(100, 1000));
  // Pushed for 3 s, and a quarter for its way; 1.25 s are paid for.
  EXPECT_EQ(bucket.Abandon(kSecond + kSecond / 2), 200);
  EXPECT_EQ(bucket.Abandon(kSecond + kSecond / 2), 0);
}

TEST(QuotaBucket, IsIdleWhenNobodyAsks) {
  QuotaBucket bucket(0);
  bucket.Report(5 * kSecond, Seconds(5), 1);
  EXPECT_FALSE(bucket.Idle(20 * kSecond));
  bucket.Report(20 * kSecond, Seconds(5), 0);
  EXPECT_TRUE(bucket.Idle(21 * kSecond));
}

TEST(QuotaBucket, TheLargestNumbersDoNotOverflow) {
  QuotaBucket bucket(0);
  bucket.Report(0, Seconds(1), ~std::uint64_t{0});
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (Nanos at = 1; at < 20; at += 3) {
    EXPECT_GE(Grant(bucket, at * kSecond, Limited(most, most)), 0);
    bucket.Begin(at * kSecond + 1);
    while (bucket.OnAnswer(at * kSecond + 1, Limited(most, most), false)) continue;
  }
  EXPECT_GE(bucket.Abandon(30 * kSecond), 0);
}

// An Envoy as it was observed: its bucket carries over, grows in proportion, and begins full after
// an expiry or a refusal of everything. It admits whatever it can.
class GreedyEnvoy {
 public:
  void Receive(Nanos now, std::int64_t rate) {
    Fill(now);
    const bool fresh = rate_ == 0 || now > until_;
    const auto size = static_cast<double>(rate);
    tokens_ = fresh ? size : tokens_ * size / static_cast<double>(rate_);
    rate_ = rate;
    until_ = now + 3 * kSecond;
  }
  std::int64_t Spend(Nanos now) {
    Fill(now);
    if (now > until_ || rate_ == 0) return 0;
    const auto spent = static_cast<std::int64_t>(tokens_);
    tokens_ -= static_cast<double>(spent);
    return spent;
  }

 private:
  void Fill(Nanos now) {
    const Nanos to = std::min(now, until_);
    if (to > at_) tokens_ += static_cast<double>(rate_) * static_cast<double>(to - at_) / 1e9;
    tokens_ = std::min(tokens_, static_cast<double>(rate_));
    at_ = std::max(at_, now);
  }
  std::int64_t rate_ = 0;
  double tokens_ = 0;
  Nanos at_ = 0;
  Nanos until_ = 0;
};

struct Held {
  QuotaBucket bucket{0};
  GreedyEnvoy envoy;
  Nanos pushed = 0;
  std::int64_t charged = 0;
  std::int64_t spent = 0;
};

/// One simulated second of a handful of Envoys on one limit. Admissions are replayed through the
/// exact step with T = 2.5 s more of capacity, as docs/design/rlqs.md states it, and no Envoy is
/// ever ahead of what was charged for it.
void Simulate(std::uint32_t seed) {
  std::minstd_rand random(seed);
  const auto draw = [&random](std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random);
  };
  const std::int64_t rate = draw(5, 400);
  const std::int64_t capacity = rate * draw(1, 6);
  const Quota quota = *Quota::TokenBucket(capacity, rate);
  const Quota bound = *Quota::TokenBucket(capacity + rate * 5 / 2 + 5, rate);
  algorithm::State store, oracle;
  std::array<std::uint8_t, 64> store_bytes{}, oracle_bytes{};
  store.data = store_bytes.data();
  store.capacity = store_bytes.size();
  oracle.data = oracle_bytes.data();
  oracle.capacity = oracle_bytes.size();
  std::vector<Held> all(static_cast<std::size_t>(draw(1, 4)));
  std::int64_t admitted = 0;
  Nanos now = 1000 * kSecond;
  for (int step = 0; step < 400; ++step) {
    now += draw(20, 100) * 1'000'000;
    for (Held& held : all) {
      if (draw(0, 9) == 0 || now - held.pushed > 1'100'000'000) {
        held.pushed = now;
        auto ask = held.bucket.Begin(now);
        for (;;) {
          const Decision decision = ask.cost == 0 ? algorithm::Peek(quota, store, now, 0)
                                                  : algorithm::Acquire(quota, store, now, ask.cost);
          if (decision.allowed()) held.charged += ask.cost;
          const auto next =
              held.bucket.OnAnswer(now, Limited(rate, decision.remaining), decision.allowed());
          if (!next) break;
          ask = *next;
        }
        held.bucket.Pushed(now);
        held.envoy.Receive(now, held.bucket.rate());
      }
      if (draw(0, 3) == 0) continue;
      const std::int64_t spent = held.envoy.Spend(now);
      admitted += spent;
      held.spent += spent;
      ASSERT_LE(held.spent, held.charged) << "seed " << seed << ", step " << step;
      if (spent == 0) continue;
      ASSERT_TRUE(algorithm::Acquire(bound, oracle, now, spent).allowed())
          << "seed " << seed << ", step " << step << ", rate " << rate << ", capacity " << capacity;
    }
  }
  EXPECT_GT(admitted, 0) << "seed " << seed;
}

TEST(QuotaBucket, ManyEnvoysTogetherKeepTheStatedBound) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    Simulate(seed);
    if (HasFatalFailure()) return;
  }
}

/// Three Envoys that want all of it; the last comes when the others have everything. Returns what
/// each was admitted in the second half of two minutes.
std::array<std::int64_t, 3> Share(std::int64_t rate, std::int64_t capacity, std::uint32_t seed) {
  std::minstd_rand random(seed);
  const auto draw = [&random](std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random);
  };
  const Quota quota = *Quota::TokenBucket(capacity, rate);
  std::array<std::uint8_t, 64> bytes{};
  algorithm::State store;
  store.data = bytes.data();
  store.capacity = bytes.size();
  std::array<Held, 3> all;
  std::array<std::int64_t, 3> admitted{};
  for (Nanos at = 0; at < 120 * 50; ++at) {  // steps of 20 ms
    const Nanos now = 1000 * kSecond + at * 20'000'000;
    for (std::size_t i = 0; i < 3; ++i) {
      Held& held = all[i];
      if (i == 2 && at < 20 * 50) continue;
      if (now >= held.pushed) {
        held.pushed = now + draw(700, 1000) * 1'000'000;
        held.bucket.Report(now, Seconds(5), static_cast<std::uint64_t>(rate) * 10);
        auto ask = held.bucket.Begin(now);
        for (;;) {
          const Decision decision = ask.cost == 0 ? algorithm::Peek(quota, store, now, 0)
                                                  : algorithm::Acquire(quota, store, now, ask.cost);
          const auto next =
              held.bucket.OnAnswer(now, Limited(rate, decision.remaining), decision.allowed());
          if (!next) break;
          ask = *next;
        }
        held.bucket.Pushed(now);
        held.envoy.Receive(now, held.bucket.rate());
      }
      const std::int64_t spent = held.envoy.Spend(now);
      if (at >= 60 * 50) admitted[i] += spent;
    }
  }
  return admitted;
}

TEST(QuotaBucket, EnvoysThatWantMoreThanThereIsShareIt) {
  for (const std::int64_t rate : {30, 300, 30'000}) {
    for (const std::int64_t seconds : {2, 10}) {
      const auto admitted = Share(rate, rate * seconds, 7);
      const std::int64_t all = admitted[0] + admitted[1] + admitted[2];
      SCOPED_TRACE(std::to_string(rate) + " a second, capacity of " + std::to_string(seconds) +
                   " s: " + std::to_string(admitted[0]) + ", " + std::to_string(admitted[1]) +
                   ", " + std::to_string(admitted[2]));
      EXPECT_GE(all, rate * 60 * 3 / 4);
      for (const std::int64_t one : admitted) {
        EXPECT_GE(one, all / 5);
        EXPECT_LE(one, all / 2);
      }
    }
  }
}

}  // namespace
}  // namespace weir::grpc
