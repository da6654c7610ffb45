#include "protocol/grpc/quota_bucket.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "limiter/assignments.h"

namespace weir::grpc {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
using Seconds = std::chrono::seconds;

QuotaFacts Limited(std::int64_t per_second, std::int64_t remaining) {
  return {.limited = true, .per_second = per_second, .remaining = remaining};
}

/// Requests permits and is granted all of them; returns what was charged.
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
  EXPECT_EQ(ask->cost, 100 + 125);  // a full bucket, and the refill until after the next push
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
  // 3.25 s of it were spent without a push, and 1.25 s were charged.
  EXPECT_EQ(Grant(bucket, 60 * kSecond, Limited(100, 500)), 200 + 100 + 125);
}

// Requested while it lived, answered after the Envoy's bucket expired: for the Envoy it is new.
TEST(QuotaBucket, AnAnswerThatComesAfterTheExpiryIsFollowedByAChargeForANewBucket) {
  QuotaBucket bucket(0);
  EXPECT_EQ(Grant(bucket, kSecond, Limited(100, 1000)), 225);
  EXPECT_EQ(bucket.Begin(2 * kSecond).cost, 100);
  const Nanos late = 4 * kSecond + kSecond / 5;
  const auto ask = bucket.OnAnswer(late, Limited(100, 1000), true);
  ASSERT_TRUE(ask.has_value());
  // 3.2 s were refilled, 1.25 s ahead and a full bucket are to come; 225 - 100 and 100 are charged.
  EXPECT_EQ(ask->cost, 320 + 125 + 100 - 225);
  EXPECT_FALSE(bucket.OnAnswer(late, Limited(100, 1000), true).has_value());
  EXPECT_EQ(bucket.rate(), 100);
  bucket.Pushed(late);
  EXPECT_EQ(Grant(bucket, late + kSecond, Limited(100, 1000)), 100);
}

TEST(QuotaBucket, AnAnswerThatIsMerelySlowIsNotPaidTwice) {
  QuotaBucket bucket(0);
  Grant(bucket, kSecond, Limited(100, 1000));
  bucket.Begin(2 * kSecond);
  EXPECT_FALSE(bucket.OnAnswer(3 * kSecond, Limited(100, 1000), true).has_value());
  bucket.Pushed(3 * kSecond);
  EXPECT_EQ(Grant(bucket, 3 * kSecond, Limited(100, 1000)), 100);
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
  // There seems to be plenty, but all of it is denied: another node is faster.
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
  // The 125 that would have been refilled are still charged; the full bucket is a new one.
  EXPECT_EQ(bucket.Begin(2 * kSecond).cost, 100);
}

TEST(QuotaBucket, DemandLowersWhatIsAssigned) {
  QuotaBucket bucket(0);
  Grant(bucket, kSecond, Limited(100, 1000));
  bucket.Report(2 * kSecond, Seconds(5), 35);  // 7 a second, plus one for a fraction
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
  // Pushed for 3 s, and a quarter for its latency; 1.25 s are charged.
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
    Grant(bucket, at * kSecond + 2, Limited(most, most));
    bucket.Begin(at * kSecond + 3);  // and the answer is late
    while (bucket.OnAnswer((at + 3) * kSecond, Limited(most, most), true)) continue;
  }
  EXPECT_GE(bucket.Abandon(30 * kSecond), 0);
}

}  // namespace
}  // namespace weir::grpc
