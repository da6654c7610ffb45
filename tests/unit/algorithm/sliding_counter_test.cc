#include <gtest/gtest.h>

#include <chrono>

#include "unit/algorithm/trace.h"

namespace weir::algorithm {
namespace {

using std::chrono::nanoseconds;

Quota Counter(std::int64_t limit, Nanos window, std::int64_t buckets) {
  return Quota::SlidingCounter(limit, nanoseconds(window), buckets).value();
}

TEST(SlidingCounter, OneBucketIsTheTwoWindowApproximation) {
  Key key(Counter(10, 100, 1));
  ASSERT_TRUE(key.Acquire(50, 8).allowed());
  EXPECT_EQ(key.Peek(99, 0).remaining, 2);
  // 8 * (100 - elapsed) / 100, rounded up: all of it at 100, half at 150, 1 up to 199, 0 at 200.
  EXPECT_EQ(key.Peek(100, 0).remaining, 2);
  EXPECT_EQ(key.Peek(150, 0).remaining, 6);
  EXPECT_EQ(key.Peek(151, 0).remaining, 6);  // 3.92
  EXPECT_EQ(key.Peek(199, 0).remaining, 9);  // 0.08
  EXPECT_EQ(key.Peek(200, 0).remaining, 10);
}

TEST(SlidingCounter, RetrySolvesForTheShareThatMustSlideOut) {
  Key key(Counter(10, 100, 1));
  ASSERT_TRUE(key.Acquire(50, 8).allowed());
  // 6 fit once 8 * (100 - e) / 100 <= 4: e = 50, at 150.
  EXPECT_EQ(key.Acquire(99, 6).retry_after, nanoseconds(51));
  // 3 fit once 8 * (100 - e) / 100 <= 7: 100 - e <= 87.5, e = 13, at 113.
  EXPECT_EQ(key.Acquire(99, 3).retry_after, nanoseconds(14));
  EXPECT_FALSE(key.Peek(112, 3).allowed());
  EXPECT_TRUE(key.Peek(113, 3).allowed());
  // 10 fit when nothing is left: at 200.
  EXPECT_EQ(key.Acquire(99, 10).retry_after, nanoseconds(101));
  EXPECT_EQ(key.Acquire(99, 0).reset_after, nanoseconds(101));
}

TEST(SlidingCounter, SumsItsBucketsAndShrinksTheOldest) {
  Key key(Counter(10, 40, 4));  // buckets of 10
  key.Acquire(0, 4);            // bucket 0
  key.Acquire(15, 3);           // bucket 1
  key.Acquire(39, 2);           // bucket 3
  EXPECT_EQ(key.Peek(39, 0).remaining, 1);
  EXPECT_EQ(key.Peek(40, 0).remaining, 1);  // bucket 0 is partial, still counted in full
  EXPECT_EQ(key.Peek(45, 0).remaining, 3);  // 4 * 5/10 = 2 of it
  EXPECT_EQ(key.Peek(50, 0).remaining, 5);  // bucket 0 has expired, bucket 1 is partial
  EXPECT_EQ(key.Peek(57, 0).remaining, 7);  // 3 * 3/10 = 0.9 of it, so 1
  EXPECT_EQ(key.Peek(60, 0).remaining, 8);
  EXPECT_EQ(key.Peek(75, 0).remaining, 9);  // bucket 3 partial since 70: 2 * 5/10 = 1
  EXPECT_EQ(key.Peek(80, 0).remaining, 10);
  EXPECT_EQ(key.Peek(39, 0).reset_after, nanoseconds(41));
  EXPECT_EQ(key.Peek(39, 5).retry_after, nanoseconds(11));  // 5 are left at 50, 4 at 49
}

TEST(SlidingCounter, RoundsTheBucketWidthUp) {
  Key key(Counter(1, 10, 3));  // buckets of 4, 12 in total
  key.Acquire(0, 1);
  EXPECT_EQ(key.Peek(0, 1).retry_after, nanoseconds(16));
  EXPECT_FALSE(key.Peek(15, 1).allowed());
  EXPECT_TRUE(key.Peek(16, 1).allowed());
}

TEST(SlidingCounter, ClockThatGoesBackStandsAtTheStartOfTheNewestBucket) {
  Key key(Counter(5, 40, 4));
  key.Acquire(35, 3);
  EXPECT_EQ(key.Acquire(5, 2).remaining, 0);
  EXPECT_EQ(key.Acquire(5, 1).verdict, Verdict::kLimited);
  // Both are in bucket 3, which is partial from 70: 5 * (10 - e)/10 <= 4 at e = 2.
  EXPECT_EQ(key.Acquire(5, 1).retry_after, nanoseconds(67));
}

TEST(SlidingCounter, RefundTakesTheNewestBucketsFirst) {
  Key key(Counter(10, 40, 4));
  key.Acquire(0, 4);
  key.Acquire(15, 3);
  EXPECT_EQ(key.Refund(20, 5).remaining, 8);  // all of bucket 1 and 2 of bucket 0
  EXPECT_EQ(key.Peek(50, 0).remaining, 10);
  EXPECT_EQ(key.Refund(20, 5).remaining, 10);
  EXPECT_EQ(key.Peek(20, 0).reset_after, nanoseconds(0));
}

TEST(SlidingCounter, StaysSmallWhileCountsAreSmall) {
  Key key(Counter(100, 1000, 10));
  for (Nanos now = 0; now < 10'000; now += 10) key.Acquire(now, 1);
  EXPECT_EQ(key.Bytes().size(), 18U + 11U);
}

TEST(SlidingCounter, KeepsChargesWhenTheWidthChangesAndNeverAgesThem) {
  const Quota coarse = Counter(10, 100, 1);
  const Quota fine = Counter(10, 100, 1000 / 25);
  std::uint8_t bytes[256];
  State state{.data = bytes, .size = 0, .capacity = sizeof bytes};
  ASSERT_TRUE(Acquire(coarse, state, 30, 4).allowed());
  // The bucket [0, 100) becomes one that contains 99, of width 3 = ceil(100 / 40): [99, 102).
  EXPECT_EQ(Peek(fine, state, 30, 0).remaining, 6);
  EXPECT_EQ(Peek(fine, state, 30, 0).reset_after, nanoseconds(99 + 41 * 3 - 30));
  ASSERT_TRUE(Acquire(fine, state, 30, 1).allowed());
  EXPECT_EQ(Peek(fine, state, 30, 0).remaining, 5);
  EXPECT_EQ(Peek(coarse, state, 30, 0).remaining, 5);
  EXPECT_TRUE(Valid(Algorithm::kSlidingCounter, {state.data, state.size}));
}

}  // namespace
}  // namespace weir::algorithm
