#include "store/redis/crossing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "store/memory/memory_store.h"
#include "weir/engine.h"

namespace weir::store::redis {
namespace {

using namespace std::chrono_literals;

/// Two slots on one engine; the second answers when the test allows it.
class CrossingTest : public testing::Test {
 protected:
  static constexpr Nanos kStart = Nanos{1'700'000'000} * 1'000'000'000;

  void Charge(const Quota& quota) {
    charges_ = {{"a", 1, &quota}, {"b", 1, &none_}};
    decisions_.resize(2);
    whole_.charges = charges_;
    whole_.decisions = decisions_;
    EXPECT_TRUE(engine_.TryAcquire("b", none_, 1).allowed());
    Crossing::Run(
        whole_, {{0}, {1}},
        [this](std::span<Application> parts, Done done) {
          const auto run = [this, parts, done = std::move(done)] { store_.Apply(parts, done); };
          if (parts[0].charges[0].key == "b") {
            later_ = run;
          } else {
            run();
          }
        },
        [this] { ++answers_; });
  }
  void LetItRefuse() {
    std::exchange(later_, nullptr)();
    EXPECT_EQ(answers_, 1);
    EXPECT_FALSE(whole_.applied);
  }
  int Pass(int tries, const Quota& quota) {
    int passed = 0;
    for (int i = 0; i < tries; ++i) passed += engine_.TryAcquire("a", quota).allowed() ? 1 : 0;
    return passed;
  }

  ManualClock clock_{kStart};
  Engine engine_{*Quota::TokenBucket(1, 1), EngineOptions{.clock = &clock_}};
  memory::MemoryStore store_{engine_};
  const Quota none_ = *Quota::FixedWindow(1, 1h);
  std::vector<store::Charge> charges_;
  std::vector<Decision> decisions_;
  Application whole_;
  std::function<void()> later_;
  int answers_ = 0;
};

TEST_F(CrossingTest, AnAnchoredWindowThatHasBegunMeanwhileKeepsItsCount) {
  const Quota quota = *Quota::AnchoredWindow(10, 1s);
  EXPECT_EQ(Pass(1, quota), 1);
  clock_.Advance(999ms);
  Charge(quota);
  clock_.Advance(2ms);
  EXPECT_EQ(Pass(20, quota), 10);
  clock_.Advance(1ms);
  LetItRefuse();
  EXPECT_EQ(Pass(20, quota), 0);
}

TEST_F(CrossingTest, WhatStillWeighsIsGivenBack) {
  for (const Quota& quota :
       {*Quota::AnchoredWindow(10, 1s), *Quota::FixedWindow(10, 1s), *Quota::SlidingLog(10, 1s),
        *Quota::SlidingCounter(10, 1s, 4), *Quota::TokenBucket(10, 1, 1s)}) {
    SCOPED_TRACE(quota.ToString());
    engine_.Clear();
    answers_ = 0;
    EXPECT_EQ(Pass(9, quota), 9);
    Charge(quota);
    LetItRefuse();
    EXPECT_EQ(Pass(20, quota), 1);
  }
}

// A crossing may itself be a part of one, if the places of keys have changed in between.
TEST_F(CrossingTest, SaysWhenTheFirstPartWasCharged) {
  engine_.Clear();
  const Quota quota = *Quota::FixedWindow(10, 1h);
  charges_ = {{"a", 1, &quota}, {"b", 1, &quota}};
  decisions_.resize(2);
  whole_.charges = charges_;
  whole_.decisions = decisions_;
  Crossing::Run(
      whole_, {{0}, {1}},
      [this](std::span<Application> parts, const Done& done) {
        store_.Apply(parts, done);
        clock_.Advance(1ms);
      },
      [this] { ++answers_; });
  EXPECT_TRUE(whole_.applied);
  EXPECT_EQ(whole_.at, kStart);
}

// A client retries a failed refund, so parts that succeeded would be returned twice.
TEST_F(CrossingTest, ARefundFailsOnlyIfNothingWasReturned) {
  charges_ = {{"a", 1, &none_}, {"b", 1, &none_}};
  decisions_.resize(2);
  whole_.op = Op::kRefund;
  whole_.charges = charges_;
  whole_.decisions = decisions_;
  const auto run = [this](std::size_t away_from) {
    Crossing::Run(
        whole_, {{0}, {1}},
        [this, away_from](std::span<Application> parts, const Done& done) {
          store_.Apply(parts, [] {});
          for (std::size_t i = away_from; i < parts.size(); ++i) {
            parts[i].status = Error{Code::kUnavailable, "away"};
          }
          done();
        },
        [this] { ++answers_; });
  };
  run(1);
  EXPECT_TRUE(whole_.status.ok());
  run(0);
  EXPECT_EQ(whole_.status.error().code, Code::kUnavailable);
  EXPECT_EQ(answers_, 2);
}

}  // namespace
}  // namespace weir::store::redis
