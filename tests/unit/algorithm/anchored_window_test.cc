#include <gtest/gtest.h>

#include <chrono>

#include "unit/algorithm/trace.h"

namespace weir::algorithm {
namespace {

using std::chrono::nanoseconds;

Quota Window(std::int64_t limit, Nanos window) {
  return Quota::AnchoredWindow(limit, nanoseconds(window)).value();
}

TEST(AnchoredWindow, BeginsWithTheFirstChargeAndNotOnTheHour) {
  Key key(Window(2, 100));
  EXPECT_EQ(key.Acquire(299, 1).remaining, 1);
  EXPECT_EQ(key.Acquire(300, 1).remaining, 0);
  const Decision refused = key.Acquire(398, 1);
  EXPECT_EQ(refused.verdict, Verdict::kLimited);
  EXPECT_EQ(refused.retry_after, nanoseconds(1));
  EXPECT_EQ(key.Acquire(399, 1).remaining, 1);
}

TEST(AnchoredWindow, TheNextWindowBeginsWithTheNextCharge) {
  Key key(Window(1, 100));
  ASSERT_TRUE(key.Acquire(0, 1).allowed());
  EXPECT_EQ(key.Acquire(250, 1).reset_after, nanoseconds(100));
  EXPECT_FALSE(key.Acquire(349, 1).allowed());
}

TEST(AnchoredWindow, ALookOrARefusalBeginsNone) {
  Key key(Window(1, 100));
  EXPECT_TRUE(key.Acquire(10, 0).allowed());
  EXPECT_EQ(key.Acquire(20, 2).verdict, Verdict::kNever);
  EXPECT_EQ(key.Acquire(50, 1).reset_after, nanoseconds(100));
}

TEST(AnchoredWindow, KeepsItsEndWhenTheClockGoesBack) {
  Key key(Window(2, 100));
  ASSERT_TRUE(key.Acquire(300, 1).allowed());
  EXPECT_TRUE(key.Acquire(120, 1).allowed());
  EXPECT_EQ(key.Acquire(120, 1).retry_after, nanoseconds(280));
}

TEST(AnchoredWindow, WhatIsGivenBackWholeBeginsAgain) {
  Key key(Window(5, 100));
  key.Acquire(10, 3);
  EXPECT_EQ(key.Refund(20, 1).remaining, 3);
  EXPECT_EQ(key.Refund(20, 9).remaining, 5);
  EXPECT_EQ(key.Refund(20, 1).reset_after, nanoseconds(0));
  EXPECT_EQ(key.Acquire(90, 1).reset_after, nanoseconds(100));
}

TEST(AnchoredWindow, CountsOnWhenTheQuotaChanges) {
  std::uint8_t bytes[16];
  State state{.data = bytes, .size = 0, .capacity = sizeof bytes};
  ASSERT_TRUE(Acquire(Window(5, 100), state, 150, 4).allowed());
  EXPECT_EQ(Acquire(Window(6, 1000), state, 150, 0).remaining, 2);
  EXPECT_EQ(Acquire(Window(3, 1000), state, 150, 1).verdict, Verdict::kLimited);
  EXPECT_EQ(Acquire(Window(3, 1000), state, 250, 1).reset_after, nanoseconds(1000));
}

}  // namespace
}  // namespace weir::algorithm
