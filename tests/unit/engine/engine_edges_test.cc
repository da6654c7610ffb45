// Calls that have no effect: an unknown permit, nothing reserved, no cost.

#include <gtest/gtest.h>

#include <chrono>

#include "weir/engine.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

class EngineEdges : public testing::Test {
 protected:
  ManualClock clock_{1'700'000'000'000'000'000};
  const Quota tokens_ = *Quota::TokenBucket(10, 1);
  const Quota window_ = *Quota::FixedWindow(10, 1h);
  const Quota jobs_ = *Quota::Concurrency(10, 1h);
  Engine engine_{tokens_, {.max_keys = 1000, .clock = &clock_}};
};

TEST_F(EngineEdges, AnOverdraftOfLessThanNothingIsInvalidAndChangesNothing) {
  for (const Quota& quota : {tokens_, window_}) {
    EXPECT_EQ(engine_.Overdraw("k", quota, -1).verdict, Verdict::kInvalid);
    EXPECT_EQ(engine_.Overdraw("k", quota, 0).remaining, 10);
  }
  EXPECT_EQ(engine_.size(), 0U);
}

TEST_F(EngineEdges, OnlyConcurrencyHasPermitsToRelease) {
  EXPECT_FALSE(engine_.Release("k", tokens_, 7)) << "nobody knows the key";
  for (const Quota& quota : {tokens_, window_}) {
    ASSERT_TRUE(engine_.TryAcquire("k", quota, 4).allowed());
    EXPECT_FALSE(engine_.Release("k", quota, 7));
    EXPECT_EQ(engine_.Peek("k", quota, 0).remaining, 6);
  }
  const std::int64_t lease = engine_.TryAcquire("k", jobs_, 1).lease;
  EXPECT_FALSE(engine_.Release("k", jobs_, lease + 1));
  EXPECT_TRUE(engine_.Release("k", jobs_, lease));
}

TEST_F(EngineEdges, WhatWasNotReservedIsNotSettled) {
  const Reservation refused = engine_.Reserve("k", window_, 11, 60s);
  EXPECT_FALSE(refused.decision.allowed());
  EXPECT_FALSE(engine_.Settle(refused, 0));
  EXPECT_EQ(engine_.Peek("k", window_, 0).remaining, 10);
  const Reservation granted = engine_.Reserve("k", window_, 4, 60s);
  EXPECT_EQ(engine_.Peek("k", window_, 0).remaining, 6);
  EXPECT_TRUE(engine_.Settle(granted, 1));
  EXPECT_EQ(engine_.Peek("k", window_, 0).remaining, 9);
}

}  // namespace
}  // namespace weir
