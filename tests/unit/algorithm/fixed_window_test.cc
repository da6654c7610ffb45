#include <gtest/gtest.h>

#include <chrono>

#include "unit/algorithm/trace.h"

namespace weir::algorithm {
namespace {

using std::chrono::nanoseconds;

Quota Window(std::int64_t limit, Nanos window) {
  return Quota::FixedWindow(limit, nanoseconds(window)).value();
}

TEST(FixedWindow, GrantsTheLimitInEachWindow) {
  Key key(Window(2, 100));
  EXPECT_EQ(key.Acquire(250, 1).remaining, 1);
  EXPECT_EQ(key.Acquire(299, 1).remaining, 0);
  EXPECT_EQ(key.Acquire(299, 1).verdict, Verdict::kLimited);
  EXPECT_EQ(key.Acquire(300, 1).remaining, 1);
}

TEST(FixedWindow, TellsTheTimeToTheEndOfTheWindow) {
  Key key(Window(2, 100));
  EXPECT_EQ(key.Acquire(250, 2).reset_after, nanoseconds(50));
  const Decision refused = key.Acquire(260, 1);
  EXPECT_EQ(refused.retry_after, nanoseconds(40));
  EXPECT_EQ(refused.reset_after, nanoseconds(40));
}

TEST(FixedWindow, WindowsBeforeTheEpochBeginAtMultiplesToo) {
  // -250 lies in [-300, -200).
  Key key(Window(1, 100));
  EXPECT_EQ(key.Acquire(-250, 1).reset_after, nanoseconds(50));
  EXPECT_FALSE(key.Acquire(-201, 1).allowed());
  EXPECT_TRUE(key.Acquire(-200, 1).allowed());
}

TEST(FixedWindow, KeepsTheLaterWindowInForceWhenTheClockGoesBack) {
  Key key(Window(2, 100));
  ASSERT_TRUE(key.Acquire(300, 1).allowed());
  EXPECT_TRUE(key.Acquire(120, 1).allowed());
  const Decision refused = key.Acquire(120, 1);
  EXPECT_EQ(refused.verdict, Verdict::kLimited);
  EXPECT_EQ(refused.retry_after, nanoseconds(280));  // the window in force ends at 400
}

TEST(FixedWindow, RefundStopsAtNothingUsed) {
  Key key(Window(5, 100));
  key.Acquire(10, 3);
  EXPECT_EQ(key.Refund(20, 1).remaining, 3);
  EXPECT_EQ(key.Refund(20, 9).remaining, 5);
  EXPECT_EQ(key.Refund(20, 1).reset_after, nanoseconds(0));
}

TEST(FixedWindow, RefundAfterTheWindowChangesNothing) {
  Key key(Window(5, 100));
  key.Acquire(10, 3);
  EXPECT_EQ(key.Refund(100, 3).remaining, 5);
  EXPECT_EQ(key.Peek(99, 0).remaining, 2);
}

TEST(FixedWindow, CountsOnWhenTheQuotaChanges) {
  std::uint8_t bytes[16];
  State state{.data = bytes, .size = 0, .capacity = sizeof bytes};
  ASSERT_TRUE(Acquire(Window(5, 100), state, 150, 4).allowed());
  EXPECT_EQ(Acquire(Window(6, 1000), state, 150, 0).remaining, 2);
  EXPECT_EQ(Acquire(Window(3, 1000), state, 150, 1).verdict, Verdict::kLimited);
  EXPECT_EQ(Acquire(Window(3, 1000), state, 1000, 1).remaining, 2);
}

}  // namespace
}  // namespace weir::algorithm
