// A charge that a later store denies, or does not answer, is undone after some time has passed: as
// far as it still counts, and never at the cost of what others were charged in the meantime.

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unit/store/route/routing_fixture.h"

namespace weir::store::route {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kKey = "api/cold|a";   // in the store that is called first
constexpr std::string_view kLater = "api/hot|a";  // in the one that denies

class UndoTest : public RoutingStoreTest {
 protected:
  UndoTest() { doors_[1].slow = true; }

  /// Charges the first store immediately; the second holds its denial.
  void ChargeBoth(const Quota& quota) {
    Start({{kKey, 1, &quota}, {kLater, 20, &minute_}});  // 20 never fit into 10
  }
  void Start(std::vector<Charge> charges) {
    auto asked = std::make_unique<Asked>();
    asked->charges = std::move(charges);
    asked->decisions.resize(asked->charges.size());
    asked->application.charges = asked->charges;
    asked->application.decisions = asked->decisions;
    store_->Apply({&asked->application, 1}, [this] { ++answers_; });
    asked_.push_back(std::move(asked));
  }
  void LetItRefuse() {
    while (!doors_[1].kept.empty()) {
      for (auto& answer : std::exchange(doors_[1].kept, {})) answer();
    }
    EXPECT_EQ(answers_, asked_.size());
    for (const auto& asked : asked_) EXPECT_FALSE(asked->application.applied);
    asked_.clear();
    answers_ = 0;
  }
  int Pass(int tries, const Quota& quota) {
    int passed = 0;
    for (int i = 0; i < tries; ++i) passed += Charge1(kKey, quota) ? 1 : 0;
    return passed;
  }

 private:
  struct Asked {
    std::vector<Charge> charges;
    std::vector<Decision> decisions;
    Application application;
  };
  std::vector<std::unique_ptr<Asked>> asked_;
  std::size_t answers_ = 0;
};

TEST_F(UndoTest, ATokenBucketGetsBackNothingThatHasFlowedInMeanwhile) {
  const Quota quota = *Quota::TokenBucket(100, 1000, 1s);
  for (int i = 0; i < 50; ++i) ChargeBoth(quota);
  clock_.Advance(99ms);  // has been full for 50 ms
  EXPECT_EQ(Pass(200, quota), 100);
  clock_.Advance(1ms);
  LetItRefuse();
  EXPECT_EQ(Pass(100, quota), 1);  // what 1 ms grants: 101 in it, as B + rL
  EXPECT_EQ(counts_.not_undone, 0U);
}

TEST_F(UndoTest, ATokenBucketGetsBackWhatStillWeighs) {
  const Quota quota = *Quota::TokenBucket(100, 1000, 1s);
  EXPECT_EQ(Pass(50, quota), 50);
  for (int i = 0; i < 50; ++i) ChargeBoth(quota);
  LetItRefuse();
  EXPECT_EQ(Pass(100, quota), 50);
}

TEST_F(UndoTest, AWindowThatHasBegunMeanwhileKeepsItsCount) {
  const Quota quota = *Quota::FixedWindow(10, 1s);
  clock_.Advance(998ms);
  ChargeBoth(quota);
  clock_.Advance(3ms);
  EXPECT_EQ(Pass(20, quota), 10);
  clock_.Advance(2ms);
  LetItRefuse();
  EXPECT_EQ(Pass(20, quota), 0);
}

TEST_F(UndoTest, AnAnchoredWindowThatHasBegunMeanwhileKeepsItsCount) {
  const Quota quota = *Quota::AnchoredWindow(10, 1s);
  EXPECT_EQ(Pass(1, quota), 1);
  clock_.Advance(999ms);
  ChargeBoth(quota);
  clock_.Advance(2ms);
  EXPECT_EQ(Pass(20, quota), 10);
  clock_.Advance(1ms);
  LetItRefuse();
  EXPECT_EQ(Pass(20, quota), 0);
}

TEST_F(UndoTest, AWindowStillInForceGetsItBack) {
  for (const Quota& quota : {*Quota::FixedWindow(10, 1s), *Quota::AnchoredWindow(10, 1s)}) {
    SCOPED_TRACE(quota.ToString());
    EXPECT_EQ(Pass(9, quota), 9);
    ChargeBoth(quota);
    clock_.Advance(100ms);
    LetItRefuse();
    EXPECT_EQ(Pass(20, quota), 1);
  }
}

TEST_F(UndoTest, ALogLosesTheEntryThatWasRefusedAndNoOther) {
  const Quota quota = *Quota::SlidingLog(10, 1s);
  ChargeBoth(quota);
  clock_.Advance(500ms);
  EXPECT_EQ(Pass(20, quota), 9);
  clock_.Advance(100ms);
  LetItRefuse();
  EXPECT_EQ(Pass(20, quota), 1);
  clock_.Advance(450ms);  // 1.05 s: the denied one would have expired by itself
  EXPECT_EQ(Pass(20, quota), 0);
}

TEST_F(UndoTest, ACounterGivesBackInTheBucketThatWasCharged) {
  const Quota quota = *Quota::SlidingCounter(10, 10s, 10);
  ChargeBoth(quota);
  clock_.Advance(5s);
  EXPECT_EQ(Pass(20, quota), 9);
  clock_.Advance(100ms);
  LetItRefuse();
  EXPECT_EQ(Pass(20, quota), 1);
  clock_.Advance(6s);
  EXPECT_EQ(Pass(20, quota), 0);
}

TEST_F(UndoTest, AStoreThatFailsLateUndoesNoMore) {
  const Quota quota = *Quota::FixedWindow(10, 1s);
  clock_.Advance(950ms);
  ChargeBoth(quota);
  clock_.Advance(100ms);
  EXPECT_EQ(Pass(20, quota), 10);
  doors_[1].shut = true;
  LetItRefuse();
  EXPECT_EQ(Pass(20, quota), 0);
}

TEST_F(UndoTest, AKeyOnTheMoveIsUndoneInItsOldStoreAsOfItsCharge) {
  const Quota quota = *Quota::FixedWindow(10, 1s);
  Moving(kWhole, 0);
  clock_.Advance(998ms);
  Start({{kKey, 1, &quota}});
  clock_.Advance(4ms);
  EXPECT_TRUE(engines_[0].TryAcquire(kKey, quota, 10).allowed());
  EXPECT_TRUE(engines_[1].TryAcquire(kKey, quota, 10).allowed());
  LetItRefuse();
  EXPECT_EQ(LeftAt(0, kKey, quota), 0);
}

TEST_F(UndoTest, NoMoreIsAdmittedThanTheQuotaGrantsWheneverTheRefusalsCome) {
  std::mt19937_64 random(20'261'117);
  for (const Quota& quota : {*Quota::TokenBucket(10, 20, 1s), *Quota::FixedWindow(10, 1s),
                             *Quota::SlidingLog(10, 1s), *Quota::SlidingCounter(10, 1s, 10)}) {
    for (int run = 0; run < 100; ++run) {
      const std::string key = "api/cold|" + quota.ToString() + std::to_string(run);
      // The admissions, replayed as if nothing else had been charged.
      ManualClock then(clock_.Now());
      Engine alone(quota, EngineOptions{.clock = &then});
      for (int step = 0; step < 80; ++step) {
        switch (random() % 4) {
          case 0:
            Start({{key, 1, &quota}, {kLater, 20, &minute_}});
            break;
          case 1:
            clock_.Advance(std::chrono::milliseconds(random() % 200));
            then.Advance(std::chrono::nanoseconds(clock_.Now() - then.Now()));
            break;
          case 2:
            if (random() % 4 == 0) LetItRefuse();
            break;
          default:
            if (!Charge1(key, quota)) break;
            ASSERT_TRUE(alone.TryAcquire(key).allowed()) << quota.ToString() << ", run " << run;
        }
      }
      LetItRefuse();
    }
  }
}

TEST_F(UndoTest, KeysThatAStoreCannotChargeInOneMomentAreNamedOneByOne) {
  const Quota quota = *Quota::SlidingLog(10, 1s);
  doors_[0].grouped = true;
  Start({{kKey, 1, &quota}, {"api/cold|b", 1, &quota}, {kLater, 20, &minute_}});
  LetItRefuse();
  EXPECT_EQ(LeftAt(0, kKey, quota), 10);
  EXPECT_EQ(LeftAt(0, "api/cold|b", quota), 10);
  EXPECT_EQ(counts_.not_undone, 0U);
  // If one store has them all, it handles them itself.
  doors_[0].asked.clear();
  EXPECT_TRUE(Apply(Op::kCharge, {{kKey, 1, &quota}, {"api/cold|b", 1, &quota}}));
  EXPECT_EQ(doors_[0].asked.size(), 1U);
}

TEST_F(UndoTest, WhatHasNoNameStaysCharged) {
  const Quota quota = *Quota::FixedWindow(10, 1s);
  doors_[0].nameless = true;
  ChargeBoth(quota);
  LetItRefuse();
  EXPECT_EQ(Pass(20, quota), 9);
  EXPECT_EQ(counts_.not_undone, 1U);
}

}  // namespace
}  // namespace weir::store::route
