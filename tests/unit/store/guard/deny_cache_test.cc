#include "store/guard/deny_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "store/guard/guard.h"

namespace weir::store::guard {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kNow = 1'000'000'000'000;

/// One kCharge application and its memory.
struct Asked {
  explicit Asked(std::vector<Charge> with) : charges(std::move(with)), decisions(charges.size()) {
    application.charges = charges;
    application.decisions = decisions;
  }
  std::vector<Charge> charges;
  std::vector<Decision> decisions;
  Application application;
};

Decision Limited(std::chrono::nanoseconds retry_after) {
  Decision decision;
  decision.verdict = Verdict::kLimited;
  decision.limit = 10;
  decision.retry_after = retry_after;
  decision.reset_after = 2 * retry_after;
  return decision;
}

class DenyCacheTest : public ::testing::Test {
 protected:
  DenyCacheTest() { cache_.SetOn(true); }

  /// Like the guarded store: records the marks, then caches the store's answer.
  void Keep(std::vector<Charge> charges, std::vector<Decision> decisions, Nanos sent = kNow) {
    Asked asked(std::move(charges));
    asked.decisions = std::move(decisions);
    asked.application.decisions = asked.decisions;
    cache_.Keep(asked.application, Marks(asked.charges), sent);
  }
  std::vector<std::uint64_t> Marks(const std::vector<Charge>& charges) {
    std::vector<std::uint64_t> marks;
    for (const Charge& charge : charges) marks.push_back(cache_.MarkOf(charge.key));
    return marks;
  }
  bool Known(std::vector<Charge> charges, Nanos now) {
    Asked asked(std::move(charges));
    return cache_.TryAnswer(asked.application, now);
  }

  const Quota quota_ = *Quota::TokenBucket(10, 1);
  const Quota larger_ = *Quota::TokenBucket(20, 1);
  DenyCache cache_{DenyCacheOptions{.max_keys = 1024, .longest = 1000ms}};
};

TEST_F(DenyCacheTest, RefusesUntilTheTimeTheStoreNamedCountedFromTheSending) {
  Keep({{"k", 1, &quota_}}, {Limited(300ms)});
  Asked asked({{"k", 1, &quota_}});
  ASSERT_TRUE(cache_.TryAnswer(asked.application, kNow + 299'999'999));
  EXPECT_EQ(asked.decisions[0].verdict, Verdict::kLimited);
  EXPECT_EQ(asked.decisions[0].retry_after, 1ns);
  EXPECT_EQ(asked.decisions[0].reset_after, 300'000'001ns);
  EXPECT_FALSE(asked.application.applied);
  EXPECT_FALSE(Known({{"k", 1, &quota_}}, kNow + 300'000'000));
}

TEST_F(DenyCacheTest, NothingIsKeptLongerThanTheLongest) {
  Keep({{"k", 1, &quota_}}, {Limited(1h)});
  EXPECT_TRUE(Known({{"k", 1, &quota_}}, kNow + 999'999'999));
  EXPECT_FALSE(Known({{"k", 1, &quota_}}, kNow + 1'000'000'000));
}

TEST_F(DenyCacheTest, AnotherQuotaCostOrKeyIsAskedOfTheStore) {
  Keep({{"k", 2, &quota_}}, {Limited(300ms)});
  EXPECT_FALSE(Known({{"k", 2, &larger_}}, kNow));  // the limit was raised
  EXPECT_FALSE(Known({{"k", 1, &quota_}}, kNow));   // less might fit
  EXPECT_FALSE(Known({{"l", 2, &quota_}}, kNow));
  EXPECT_TRUE(Known({{"k", 2, &quota_}}, kNow));
}

TEST_F(DenyCacheTest, PeeksAreAlwaysAskedOfTheStore) {
  Keep({{"k", 1, &quota_}}, {Limited(300ms)});
  Asked asked({{"k", 1, &quota_}});
  asked.application.op = Op::kPeek;
  EXPECT_FALSE(cache_.TryAnswer(asked.application, kNow));
}

TEST_F(DenyCacheTest, ConcurrencyMayBeReleasedAnyTimeSoItIsNotKept) {
  const Quota concurrency = *Quota::Concurrency(1, 1min);
  Keep({{"k", 1, &concurrency}}, {Limited(1min)});
  EXPECT_FALSE(Known({{"k", 1, &concurrency}}, kNow));
}

TEST_F(DenyCacheTest, ForgetsAKeyThatWasFreed) {
  Keep({{"k", 1, &quota_}}, {Limited(300ms)});
  cache_.Forget(HashOf("k"));
  EXPECT_FALSE(Known({{"k", 1, &quota_}}, kNow));
}

TEST_F(DenyCacheTest, DoesNotKeepAnAnswerThatWasUnderWayWhenTheKeyWasFreed) {
  Asked asked({{"k", 1, &quota_}});
  asked.decisions[0] = Limited(300ms);
  const auto marks = Marks(asked.charges);
  cache_.Forget(HashOf("k"));  // the refund overtakes the denial
  cache_.Keep(asked.application, marks, kNow);
  EXPECT_FALSE(Known({{"k", 1, &quota_}}, kNow));
}

TEST_F(DenyCacheTest, SeveralChargesAreAnsweredOnlyIfAllAreKnown) {
  Decision fine;
  fine.limit = 10;
  fine.remaining = 7;
  Keep({{"a", 1, &quota_}, {"b", 1, &quota_}}, {Limited(300ms), fine});
  Asked both({{"a", 1, &quota_}, {"b", 1, &quota_}});
  ASSERT_TRUE(cache_.TryAnswer(both.application, kNow));
  EXPECT_EQ(both.decisions[1].remaining, 7);
  EXPECT_TRUE(both.decisions[1].allowed());
  EXPECT_FALSE(Known({{"a", 1, &quota_}, {"c", 1, &quota_}}, kNow));
  // A decision that came with a denial denies nothing by itself.
  EXPECT_FALSE(Known({{"b", 1, &quota_}}, kNow));
  EXPECT_TRUE(Known({{"a", 1, &quota_}}, kNow));
}

TEST_F(DenyCacheTest, AKeyThatOneCallChargesTwiceIsNotKept) {
  Keep({{"a", 6, &quota_}, {"a", 6, &larger_}}, {Decision{}, Limited(300ms)});
  EXPECT_FALSE(Known({{"a", 6, &larger_}}, kNow));
}

TEST_F(DenyCacheTest, OffMeansEmpty) {
  Keep({{"k", 1, &quota_}}, {Limited(300ms)});
  cache_.SetOn(false);
  EXPECT_FALSE(Known({{"k", 1, &quota_}}, kNow));
  Keep({{"k", 1, &quota_}}, {Limited(300ms)});
  cache_.SetOn(true);
  EXPECT_FALSE(Known({{"k", 1, &quota_}}, kNow));
}

TEST_F(DenyCacheTest, HoldsNoMoreThanItsBound) {
  std::vector<std::string> keys(10'000);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = "key" + std::to_string(i);
    Keep({{keys[i], 1, &quota_}}, {Limited(300ms)});
  }
  std::size_t known = 0;
  for (const std::string& key : keys) known += Known({{key, 1, &quota_}}, kNow) ? 1 : 0;
  EXPECT_LE(known, 1024U);
  EXPECT_GT(known, 900U);
}

TEST_F(DenyCacheTest, WhatWaitingWillNotHelpIsNotKept) {
  Decision never = Limited(300ms);
  never.verdict = Verdict::kNever;
  Keep({{"k", 1, &quota_}}, {never});
  EXPECT_FALSE(Known({{"k", 1, &quota_}}, kNow));
  Keep({{"k", 1, &quota_}}, {Limited(0ms)});
  EXPECT_FALSE(Known({{"k", 1, &quota_}}, kNow));
}

TEST_F(DenyCacheTest, ANewerRefusalTakesTheOldOnesPlace) {
  Keep({{"k", 1, &quota_}}, {Limited(300ms)});
  Keep({{"k", 1, &quota_}}, {Limited(500ms)}, kNow + 200'000'000);
  Asked asked({{"k", 1, &quota_}});
  ASSERT_TRUE(cache_.TryAnswer(asked.application, kNow + 600'000'000));
  EXPECT_EQ(asked.decisions[0].retry_after, 100ms);
  EXPECT_EQ(cache_.counts().kept, 2U);
}

TEST_F(DenyCacheTest, ARefusalIsWorthMoreThanWhatWasSaidBesideAnother) {
  Keep({{"a", 1, &quota_}}, {Limited(300ms)});
  Keep({{"a", 1, &quota_}, {"b", 1, &quota_}}, {Decision{}, Limited(300ms)}, kNow + 1);
  EXPECT_TRUE(Known({{"a", 1, &quota_}}, kNow + 2));
  // Once it expires, the decision that came with another denial replaces it, and a denial that one.
  Keep({{"a", 1, &quota_}, {"c", 1, &quota_}}, {Decision{}, Limited(300ms)}, kNow + 300'000'000);
  EXPECT_TRUE(Known({{"a", 1, &quota_}, {"c", 1, &quota_}}, kNow + 300'000'001));
  EXPECT_FALSE(Known({{"a", 1, &quota_}}, kNow + 300'000'001));
  Keep({{"a", 1, &quota_}, {"d", 1, &quota_}}, {Decision{}, Limited(300ms)}, kNow + 300'000'002);
  EXPECT_TRUE(Known({{"a", 1, &quota_}, {"d", 1, &quota_}}, kNow + 300'000'003));
}

TEST_F(DenyCacheTest, CallsOfManyKeysAreAlwaysAskedOfTheStore) {
  std::vector<std::string> keys(17);
  std::vector<Charge> charges;
  std::vector<Decision> decisions;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = "k" + std::to_string(i);
    charges.push_back({keys[i], 1, &quota_});
    decisions.push_back(Limited(300ms));
  }
  Keep(charges, decisions);
  EXPECT_FALSE(Known({charges[0]}, kNow));
  for (std::size_t i = 0; i < keys.size(); ++i) Keep({charges[i]}, {decisions[i]});
  EXPECT_FALSE(Known(charges, kNow));
  charges.pop_back();
  EXPECT_TRUE(Known(charges, kNow));
}

TEST_F(DenyCacheTest, ForgettingWhileItIsOffOnlyCounts) {
  cache_.SetOn(false);
  cache_.Forget(HashOf("k"));
  EXPECT_EQ(cache_.counts().forgotten, 1U);
}

TEST(DenyCacheOfNothing, NeverKeepsAnything) {
  DenyCache cache(DenyCacheOptions{.max_keys = 0});
  cache.SetOn(true);
  EXPECT_FALSE(cache.on());
}

TEST(Hashes, AreReadAsTheyWereWrittenAndNothingElseIs) {
  const std::vector<std::uint64_t> hashes = {0, 1, 0xfedcba9876543210};
  const std::string text = WriteHashes(hashes);
  EXPECT_EQ(text, "00000000000000000000000000000001fedcba9876543210");
  EXPECT_EQ(ReadHashes(text), hashes);
  EXPECT_FALSE(ReadHashes("123"));
  EXPECT_FALSE(ReadHashes("000000000000000g"));
  EXPECT_FALSE(ReadHashes(std::string((kMaxHashes + 1) * 16, '0')));
}

}  // namespace
}  // namespace weir::store::guard
