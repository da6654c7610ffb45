#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "algorithm/charge_log.h"
#include "unit/algorithm/trace.h"

namespace weir::algorithm {
namespace {

using std::chrono::nanoseconds;

Quota Log(std::int64_t limit, Nanos window) {
  return Quota::SlidingLog(limit, nanoseconds(window)).value();
}

TEST(SlidingLog, GrantsTheLimitInAnyWindow) {
  Key key(Log(3, 100));
  EXPECT_TRUE(key.Acquire(10, 1).allowed());
  EXPECT_TRUE(key.Acquire(50, 2).allowed());
  EXPECT_FALSE(key.Acquire(109, 1).allowed());  // 10 > 109 - 100
  EXPECT_TRUE(key.Acquire(110, 1).allowed());   // 10 is not > 110 - 100
  EXPECT_FALSE(key.Acquire(110, 1).allowed());
}

TEST(SlidingLog, WhatIsRefusedIsNotRemembered) {
  Key key(Log(2, 100));
  key.Acquire(0, 1);
  key.Acquire(1, 1);
  for (int now = 50; now < 100; ++now) EXPECT_FALSE(key.Acquire(now, 1).allowed());
  // Had one of them counted, it would block until 150.
  EXPECT_TRUE(key.Acquire(100, 1).allowed());
  EXPECT_TRUE(key.Acquire(101, 1).allowed());
}

TEST(SlidingLog, RetryWaitsUntilEnoughOfTheOldestHaveLeft) {
  Key key(Log(4, 100));
  key.Acquire(10, 1);
  key.Acquire(20, 2);
  key.Acquire(30, 1);
  EXPECT_EQ(key.Acquire(40, 1).retry_after, nanoseconds(70));  // 10 expires at 110
  EXPECT_EQ(key.Acquire(40, 2).retry_after, nanoseconds(80));  // 20 expires at 120
  EXPECT_EQ(key.Acquire(40, 3).retry_after, nanoseconds(80));
  EXPECT_EQ(key.Acquire(40, 4).retry_after, nanoseconds(90));  // 30 expires at 130
  EXPECT_EQ(key.Acquire(40, 4).reset_after, nanoseconds(90));
  EXPECT_EQ(key.Acquire(40, 5).verdict, Verdict::kNever);
}

TEST(SlidingLog, GrantsOfOneMomentShareAnEntry) {
  Key key(Log(1000, 100));
  key.Acquire(10, 1);
  const std::size_t once = key.Bytes().size();
  for (int i = 0; i < 120; ++i) ASSERT_TRUE(key.Acquire(10, 1).allowed());
  EXPECT_EQ(key.Bytes().size(), once + 1);  // a cost of 121 takes one byte more than a cost of 1
  EXPECT_EQ(key.Peek(10, 0).remaining, 879);
}

TEST(SlidingLog, ClockThatGoesBackStandsAtTheNewestGrant) {
  Key key(Log(2, 100));
  key.Acquire(500, 1);
  EXPECT_EQ(key.Acquire(450, 1).remaining, 0);  // counts as of 500
  EXPECT_EQ(key.Acquire(450, 1).retry_after, nanoseconds(150));
  EXPECT_FALSE(key.Acquire(599, 1).allowed());
  EXPECT_EQ(key.Acquire(600, 1).remaining, 1);
}

TEST(SlidingLog, RefundTakesTheLatestGrantsFirst) {
  Key key(Log(6, 100));
  key.Acquire(10, 2);
  key.Acquire(20, 2);
  key.Acquire(30, 2);
  EXPECT_EQ(key.Refund(40, 3).remaining, 3);  // leaves 2 of 10 and 1 of 20
  EXPECT_EQ(key.Peek(40, 4).retry_after, nanoseconds(70));
  EXPECT_EQ(key.Peek(40, 6).retry_after, nanoseconds(80));
  EXPECT_EQ(key.Peek(40, 0).reset_after, nanoseconds(80));
  EXPECT_EQ(key.Peek(110, 0).remaining, 5);
  EXPECT_EQ(key.Peek(120, 0).remaining, 6);
  EXPECT_EQ(key.Refund(40, 100).remaining, 6);
  EXPECT_EQ(key.Peek(40, 0).reset_after, nanoseconds(0));
}

TEST(SlidingLog, RefundDoesNotReachWhatHasLeftTheWindow) {
  Key key(Log(6, 100));
  key.Acquire(10, 2);
  key.Acquire(50, 1);
  EXPECT_EQ(key.Refund(120, 9).remaining, 6);
  EXPECT_EQ(key.Peek(60, 0).remaining, 4);
}

TEST(SlidingLog, ForgetsWhatHasExpiredWhenItGrants) {
  Key key(Log(10, 1000));
  for (Nanos now = 0; now < 100'000; now += 110) ASSERT_TRUE(key.Acquire(now, 1).allowed());
  // Ten entries of two bytes each (110 ns: seven bits), and at most an eighth of that unused.
  EXPECT_LE(key.Bytes().size(), kLogHeaderBytes + 20 + 4);
}

// A hundred grants within an hour: the most common limit by address.
TEST(SlidingLog, HundredGrantsInAnHourTakeAboutFiveBytesEach) {
  constexpr Nanos kHour = 3'600'000'000'000;
  Key even(Log(100, kHour));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(even.Acquire(i * (kHour / 100), 1).allowed());
  EXPECT_EQ(even.Bytes().size(), kLogHeaderBytes + 1 + 99 * 5);  // 36 s: 36 bits, a code of 4 bits

  Key random(Log(100, kHour));
  Nanos now = 0;
  std::uint64_t dice = 1;
  for (int i = 0; i < 1000; ++i) {
    dice = dice * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
    now += static_cast<Nanos>((dice >> 24) % (kHour / 50));
    random.Acquire(now, 1);
  }
  EXPECT_LE(random.Bytes().size(), 620U);
}

TEST(SlidingLog, FullLogJoinsGrantsInsteadOfGrowing) {
  constexpr Nanos kWindow = 1'000'000'000'000;
  const Quota quota = Log(kMaxLimit, kWindow);
  std::vector<std::uint8_t> bytes(2 * kMaxLogEntries);
  State state{.data = bytes.data(), .capacity = static_cast<std::uint32_t>(bytes.size())};
  const std::int64_t grants = std::int64_t{kMaxLogEntries} + 10;
  for (Nanos now = 0; now < grants; ++now) ASSERT_TRUE(Acquire(quota, state, now, 1).allowed());
  // Entries of one byte (1 ns apart), plus the merged one.
  EXPECT_LE(state.size, kLogHeaderBytes + kMaxLogEntries + kMaxEntryBytes);
  EXPECT_EQ(Peek(quota, state, grants, 0).remaining, kMaxLimit - grants);
  // The eleven latest count as of the last of them, at grants - 1; all others expire in order.
  EXPECT_EQ(Peek(quota, state, grants - 2 + kWindow, 0).remaining, kMaxLimit - 11);
  EXPECT_EQ(Peek(quota, state, grants - 1 + kWindow, 0).remaining, kMaxLimit);
  EXPECT_TRUE(Valid(Algorithm::kSlidingLog, {state.data, state.size}));
}

}  // namespace
}  // namespace weir::algorithm
