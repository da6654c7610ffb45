// Reservations of token buckets in an engine. A bucket with reservations is in a box instead
// of its slot, and every call must find it there.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "weir/engine.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kStart = Nanos{20'000} * 86'400 * 1'000'000'000;

class ReserveTest : public ::testing::TestWithParam<KeyStorage> {
 protected:
  Engine Make(std::size_t max_keys = 1'000) {
    return Engine(quota_, {.max_keys = max_keys,
                           .keys = GetParam(),
                           .clock = &clock_,
                           .on_evict = {},
                           .track_changes = true});
  }
  static std::int64_t LeftOf(Engine& engine) { return engine.Peek("k", 0).remaining; }

  /// The worked example of docs/design/reservations.md up to its last settlement, with the engine
  /// saved and restored in between by `through`: of the 30 nothing is returned.
  template <typename Through>
  void ExpectNothingTooMuch(Engine engine, Through through) {
    const Reservation first = engine.Reserve("k", quota_, 50, 1min);
    const Reservation second = engine.Reserve("k", quota_, 10, 1min);
    engine = through(std::move(engine));
    EXPECT_TRUE(engine.Settle(first, 0));
    EXPECT_EQ(LeftOf(engine), 90);
    clock_.Advance(20s);
    EXPECT_EQ(engine.TryAcquire("k", 30).remaining, 70);
    engine = through(std::move(engine));
    EXPECT_TRUE(engine.Settle(second, 0));
    EXPECT_EQ(LeftOf(engine), 70);
  }

  ManualClock clock_{kStart};
  const Quota quota_ = *Quota::TokenBucket(100, 1, 1s);
};

INSTANTIATE_TEST_SUITE_P(Keys, ReserveTest,
                         ::testing::Values(KeyStorage::kFingerprint, KeyStorage::kText),
                         [](const auto& test) {
                           return test.param == KeyStorage::kText ? "Text" : "Fingerprint";
                         });

TEST_P(ReserveTest, WhatOthersGaveBackDoesNotMakeItTooMuch) {
  ExpectNothingTooMuch(Make(), [](Engine engine) { return engine; });
}

TEST_P(ReserveTest, ASnapshotKeepsWhatASettlementNeeds) {
  ExpectNothingTooMuch(Make(), [&](Engine engine) {
    std::stringstream bytes;
    EXPECT_TRUE(engine.Save(bytes).ok());
    Engine loaded = Make();
    EXPECT_TRUE(loaded.Load(bytes).ok());
    return loaded;
  });
}

TEST_P(ReserveTest, AJournalKeepsWhatASettlementNeeds) {
  std::string journal;
  ExpectNothingTooMuch(Make(), [&](Engine engine) {
    if (journal.empty()) engine.SaveIdentity(journal);
    engine.SaveChanges(journal);
    Engine loaded = Make();
    EXPECT_TRUE(loaded.LoadChanges(journal).ok());
    return loaded;
  });
}

// A plain charge first, so that the bucket moves from its slot into a box; then every call.
TEST_P(ReserveTest, ABucketInABoxIsTheSameBucket) {
  Engine engine = Make();
  EXPECT_EQ(engine.TryAcquire("k", 5).remaining, 95);
  const Reservation reserved = engine.Reserve("k", quota_, 20, 1min);
  EXPECT_EQ(reserved.decision.remaining, 75);
  EXPECT_EQ(reserved.decision.lease, 0);
  EXPECT_EQ(engine.size(), 2U);  // and the record
  EXPECT_EQ(engine.TryAcquire("k", 5).remaining, 70);
  EXPECT_EQ(engine.Overdraw("k", 80).verdict, Verdict::kLimited);
  EXPECT_EQ(engine.Refund("k", 80).remaining, 70);
  EXPECT_FALSE(engine.Release("k", 1));
  const LeaseGrant lease = engine.Lease("k", quota_, 10);
  EXPECT_EQ(lease.granted, 10);
  EXPECT_EQ(engine.Return("k", quota_, lease.at, 10).remaining, 70);
  const std::array<Ask, 1> asks = {Ask{"k", 3}};
  std::array<Decision, 1> decisions;
  engine.TryAcquireBatch(asks, decisions);
  EXPECT_EQ(decisions[0].remaining, 67);
  EXPECT_EQ(engine.TryAcquire("k", 68).verdict, Verdict::kLimited);
  EXPECT_EQ(engine.TryAcquire("k", -1).verdict, Verdict::kInvalid);
  EXPECT_TRUE(engine.Settle(reserved, 0));
  EXPECT_EQ(LeftOf(engine), 87);
  std::vector<std::string> keys;
  engine.Visit([&](const KeyView& view) { keys.emplace_back(view.key); });
  if (GetParam() == KeyStorage::kText) {
    EXPECT_NE(std::find(keys.begin(), keys.end(), "k"), keys.end());
  }
  clock_.Advance(13s);
  EXPECT_EQ(LeftOf(engine), 100);
  EXPECT_EQ(engine.Sweep(), 1U);
  EXPECT_EQ(engine.TryAcquire("k", 1).remaining, 99);
  engine.Reset("k");
  EXPECT_EQ(LeftOf(engine), 100);
}

// All or none: the bucket is charged and restored, whether it was in its slot, in a box or nowhere.
TEST_P(ReserveTest, ARefusedReservationLeavesTheBucketAsItWas) {
  Engine engine = Make();
  const Quota full = *Quota::FixedWindow(1, 1h);
  ASSERT_TRUE(engine.TryAcquire("full", full, 1).allowed());
  const Quota record = *Quota::Concurrency(1, 1min);
  const std::array<Ask, 3> asks = {Ask{"r", 1, &record}, Ask{"k", 10, &quota_},
                                   Ask{"full", 1, &full}};
  std::array<Decision, 3> decisions;
  EXPECT_FALSE(engine.TryReserveAll(asks, 1min, decisions));
  EXPECT_EQ(engine.size(), 1U);
  EXPECT_EQ(engine.TryAcquire("k", 5).remaining, 95);
  EXPECT_FALSE(engine.TryReserveAll(asks, 1min, decisions));
  EXPECT_EQ(LeftOf(engine), 95);
  clock_.Advance(4s);
  EXPECT_EQ(LeftOf(engine), 99);
  const Reservation reserved = engine.Reserve("k", quota_, 20, 1min);
  EXPECT_FALSE(engine.TryReserveAll(asks, 1min, decisions));
  EXPECT_EQ(LeftOf(engine), 79);
  EXPECT_TRUE(engine.Settle(reserved, 0));
  EXPECT_EQ(LeftOf(engine), 99);
}

// However much is reserved and settled in a day, the limited keys keep their places.
TEST_P(ReserveTest, WhatIsSettledTakesNoRoom) {
  Engine engine = Make(100);
  const Quota day = *Quota::FixedWindow(1, 24h);
  ASSERT_TRUE(engine.TryAcquire("once a day", day).allowed());
  for (int i = 0; i < 1'000; ++i) {
    clock_.Advance(1s);
    EXPECT_TRUE(engine.Settle(engine.Reserve("k", quota_, 2, 24h), 1));
  }
  EXPECT_EQ(engine.stats().evicted_active, 0U);
  EXPECT_FALSE(engine.TryAcquire("once a day", day).allowed());
  EXPECT_EQ(engine.size(), 2U);
}

// A window records how much others were charged, not which charges were whose.
TEST_P(ReserveTest, AfterAResetAWindowReturnsAtMostWhatOthersWereChargedSince) {
  struct Case {
    Quota quota;
    std::int64_t left;  // of 100, with 30 charged since
  };
  for (const auto& [quota, left] :
       {Case{*Quota::FixedWindow(100, 1h), 100}, Case{*Quota::SlidingCounter(100, 1h, 2), 100},
        Case{*Quota::SlidingLog(100, 1h), 70}, Case{*Quota::AnchoredWindow(100, 1h), 70},
        Case{*Quota::TokenBucket(100, 100, 1h), 70}}) {
    Engine engine = Make();
    const Reservation reserved = engine.Reserve("k", quota, 50, 1min);
    clock_.Advance(1ns);
    engine.Reset("k");
    ASSERT_EQ(engine.TryAcquire("k", quota, 30).remaining, 70);
    EXPECT_TRUE(engine.Settle(reserved, 0));
    EXPECT_EQ(engine.Peek("k", quota, 0).remaining, left) << quota.ToString();
  }
}

TEST_P(ReserveTest, WithoutRoomItIsDecidedAndNotRemembered) {
  Engine engine = Make(1);
  const Reservation reserved = engine.Reserve("k", quota_, 20, 1min);
  EXPECT_TRUE(reserved.decision.allowed());
  EXPECT_EQ(engine.size(), 1U);
  engine.Settle(reserved, 0);
  EXPECT_EQ(LeftOf(engine), 100);
}

}  // namespace
}  // namespace weir
