#include "store/guard/breaker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace weir::store::guard {
namespace {

using namespace std::chrono_literals;

class BreakerTest : public ::testing::Test {
 protected:
  void Fail(int times) {
    for (int i = 0; i < times; ++i) breaker_.Failed(breaker_.period());
  }

  ManualClock clock_{1'000'000'000'000};
  std::vector<BreakerState> states_;
  Breaker breaker_{BreakerOptions{}, &clock_, [this](BreakerState s) { states_.push_back(s); }};
};

TEST_F(BreakerTest, OpensAfterFiveFailuresInARow) {
  Fail(4);
  EXPECT_TRUE(breaker_.closed());
  breaker_.Succeeded(breaker_.period());
  Fail(4);
  EXPECT_TRUE(breaker_.closed());
  Fail(1);
  EXPECT_EQ(breaker_.state(), BreakerState::kOpen);
}

TEST_F(BreakerTest, OpensWhenHalfOfASecondsCallsFailed) {
  // Success and failure alternate, so never two failures in a row. A second begins with its first
  // failure: after n pairs it has n failures and n - 1 successes, so the 10th pair makes 19 calls
  // and the 11th 21, of which more than half failed.
  for (int i = 0; i < 10; ++i) {
    breaker_.Succeeded(breaker_.period());
    Fail(1);
  }
  EXPECT_TRUE(breaker_.closed());
  breaker_.Succeeded(breaker_.period());
  Fail(1);
  EXPECT_EQ(breaker_.state(), BreakerState::kOpen);
}

TEST_F(BreakerTest, ForgetsFailuresOfEarlierSeconds) {
  for (int i = 0; i < 60; ++i) {
    breaker_.Succeeded(breaker_.period());
    Fail(1);
    clock_.Advance(200ms);  // 5 pairs a second: 10 calls, below the minimum of 20
  }
  EXPECT_TRUE(breaker_.closed());
}

TEST_F(BreakerTest, ProbesAfterAWaitThatDoublesAndIsNeverAboveTheLongest) {
  Fail(5);
  EXPECT_FALSE(breaker_.ClaimProbe());  // the first wait is 25 to 50 ms
  clock_.Advance(24ms);
  EXPECT_FALSE(breaker_.ClaimProbe());
  clock_.Advance(26ms);
  ASSERT_TRUE(breaker_.ClaimProbe());
  EXPECT_EQ(breaker_.state(), BreakerState::kHalfOpen);
  EXPECT_FALSE(breaker_.ClaimProbe());  // one at a time
  breaker_.ProbeFailed();
  clock_.Advance(49ms);  // the second is 50 to 100 ms
  EXPECT_FALSE(breaker_.ClaimProbe());
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(400ms);
    ASSERT_TRUE(breaker_.ClaimProbe());
    breaker_.ProbeFailed();
  }
}

TEST_F(BreakerTest, ASuccessfulProbeClosesIt) {
  Fail(5);
  clock_.Advance(50ms);
  ASSERT_TRUE(breaker_.ClaimProbe());
  breaker_.ProbeSucceeded();
  EXPECT_TRUE(breaker_.closed());
  using enum BreakerState;
  EXPECT_EQ(states_, (std::vector{kOpen, kHalfOpen, kClosed}));
}

TEST_F(BreakerTest, CallsFromBeforeItOpenedDoNotCountAfterwards) {
  const std::uint64_t before = breaker_.period();
  Fail(5);
  clock_.Advance(50ms);
  ASSERT_TRUE(breaker_.ClaimProbe());
  breaker_.ProbeSucceeded();
  for (int i = 0; i < 50; ++i) breaker_.Failed(before);
  EXPECT_TRUE(breaker_.closed());
}

TEST_F(BreakerTest, AnOldSuccessDoesNotExcuseNewFailures) {
  const std::uint64_t before = breaker_.period();
  Fail(5);
  clock_.Advance(50ms);
  ASSERT_TRUE(breaker_.ClaimProbe());
  breaker_.ProbeSucceeded();
  Fail(4);
  breaker_.Succeeded(before);
  Fail(1);
  EXPECT_EQ(breaker_.state(), BreakerState::kOpen);
}

TEST_F(BreakerTest, WhatFailsWhileItIsOpenPutsNothingOff) {
  Fail(5);
  clock_.Advance(49ms);
  Fail(20);
  clock_.Advance(1ms);
  EXPECT_TRUE(breaker_.ClaimProbe());
}

TEST_F(BreakerTest, StaysClosedWhereFewOfManyCallsFail) {
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 3; ++k) breaker_.Succeeded(breaker_.period());
    Fail(1);
  }
  EXPECT_TRUE(breaker_.closed());
}

TEST_F(BreakerTest, AProbeThatNobodyClaimedChangesNothing) {
  breaker_.ProbeFailed();
  EXPECT_TRUE(breaker_.closed());
  Fail(5);
  const std::uint64_t period = breaker_.period();
  breaker_.ProbeSucceeded();
  EXPECT_EQ(breaker_.state(), BreakerState::kOpen);
  EXPECT_EQ(breaker_.period(), period);
}

TEST(Breaker, NeedsNobodyWhoListens) {
  ManualClock clock(1'000'000'000'000);
  Breaker breaker(BreakerOptions{}, &clock);
  for (int i = 0; i < 5; ++i) breaker.Failed(breaker.period());
  EXPECT_EQ(breaker.state(), BreakerState::kOpen);
}

}  // namespace
}  // namespace weir::store::guard
