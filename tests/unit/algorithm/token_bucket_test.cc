#include "algorithm/token_bucket.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

namespace weir::algorithm {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr Nanos kSecond = 1'000'000'000;

Quota Bucket(std::int64_t capacity, std::int64_t refill, nanoseconds period = seconds(1)) {
  return Quota::TokenBucket(capacity, refill, period).value();
}

TEST(TokenBucket, IsFullAtFirst) {
  TokenBucketState state;
  const Decision decision = Acquire(Bucket(10, 1), state, 5 * kSecond, 0);
  EXPECT_TRUE(decision.allowed());
  EXPECT_EQ(decision.limit, 10);
  EXPECT_EQ(decision.remaining, 10);
  EXPECT_EQ(decision.reset_after, nanoseconds(0));
  EXPECT_EQ(state, TokenBucketState{});
}

TEST(TokenBucket, GrantsItsCapacityAtOnceAndThenOnePermitPerStep) {
  const Quota quota = Bucket(3, 2);  // a permit takes 0.5 s
  TokenBucketState state;
  for (int left = 2; left >= 0; --left) {
    const Decision decision = Acquire(quota, state, 0, 1);
    EXPECT_TRUE(decision.allowed());
    EXPECT_EQ(decision.remaining, left);
    EXPECT_EQ(decision.reset_after, nanoseconds((3 - left) * kSecond / 2));
  }
  const Decision refused = Acquire(quota, state, 0, 1);
  EXPECT_EQ(refused.verdict, Verdict::kLimited);
  EXPECT_EQ(refused.remaining, 0);
  EXPECT_EQ(refused.retry_after, nanoseconds(kSecond / 2));
  EXPECT_EQ(refused.reset_after, nanoseconds(3 * kSecond / 2));

  EXPECT_FALSE(Acquire(quota, state, kSecond / 2 - 1, 1).allowed());
  EXPECT_TRUE(Acquire(quota, state, kSecond / 2, 1).allowed());
  EXPECT_FALSE(Acquire(quota, state, kSecond / 2, 1).allowed());
}

TEST(TokenBucket, DeniedRequestConsumesNothing) {
  const Quota quota = Bucket(5, 1);
  TokenBucketState state;
  ASSERT_TRUE(Acquire(quota, state, 0, 3).allowed());
  const TokenBucketState before = state;
  EXPECT_EQ(Acquire(quota, state, 0, 3).verdict, Verdict::kLimited);
  EXPECT_EQ(Acquire(quota, state, 0, 6).verdict, Verdict::kNever);
  EXPECT_EQ(state, before);
  EXPECT_TRUE(Acquire(quota, state, 0, 2).allowed());
}

TEST(TokenBucket, CostAboveCapacityIsNeverGrantedAndHasNoRetryTime) {
  TokenBucketState state;
  const Decision decision = Acquire(Bucket(5, 1), state, 0, 6);
  EXPECT_EQ(decision.verdict, Verdict::kNever);
  EXPECT_EQ(decision.remaining, 5);
  EXPECT_EQ(decision.retry_after, nanoseconds(0));
}

TEST(TokenBucket, RateThatDoesNotDivideASecondNeverDrifts) {
  // 3 per second: a permit takes 333,333,333 1/3 ns, so three take exactly one second, not a
  // nanosecond less.
  const Quota quota = Bucket(3, 3);
  TokenBucketState state;
  ASSERT_TRUE(Acquire(quota, state, 0, 3).allowed());
  for (int second = 1; second <= 10'000; ++second) {
    ASSERT_EQ(Acquire(quota, state, second * kSecond - 1, 3).retry_after, nanoseconds(1));
    ASSERT_EQ(Acquire(quota, state, second * kSecond, 3).remaining, 0);
    ASSERT_EQ(Acquire(quota, state, second * kSecond, 1).retry_after, nanoseconds(333'333'334));
  }
}

TEST(TokenBucket, PermitsShorterThanANanosecondAreCountedExactly) {
  // 2 per ns, at most 7: full after 3.5 ns.
  const Quota quota = Bucket(7, 2, nanoseconds(1));
  TokenBucketState state;
  const Decision all = Acquire(quota, state, 0, 7);
  EXPECT_TRUE(all.allowed());
  EXPECT_EQ(all.reset_after, nanoseconds(4));
  EXPECT_EQ(Acquire(quota, state, 0, 1).retry_after, nanoseconds(1));
  EXPECT_EQ(Acquire(quota, state, 0, 4).retry_after, nanoseconds(2));
  EXPECT_EQ(Acquire(quota, state, 1, 0).remaining, 2);
  EXPECT_EQ(Acquire(quota, state, 3, 0).remaining, 6);
  EXPECT_EQ(Acquire(quota, state, 4, 0).remaining, 7);
}

TEST(TokenBucket, ClockThatGoesBackGrantsNothingMore) {
  const Quota quota = Bucket(2, 1);
  TokenBucketState state;
  ASSERT_TRUE(Acquire(quota, state, 100 * kSecond, 2).allowed());
  const Decision refused = Acquire(quota, state, 40 * kSecond, 1);
  EXPECT_EQ(refused.verdict, Verdict::kLimited);
  EXPECT_EQ(refused.retry_after, nanoseconds(61 * kSecond));
  EXPECT_TRUE(Acquire(quota, state, 101 * kSecond, 1).allowed());
}

TEST(TokenBucket, RefundNeverFillsBeyondTheCapacity) {
  const Quota quota = Bucket(5, 1);
  TokenBucketState state;
  Acquire(quota, state, 0, 4);
  EXPECT_EQ(Refund(quota, state, 0, 1).remaining, 2);
  EXPECT_EQ(Refund(quota, state, 0, 100).remaining, 5);
  EXPECT_EQ(Refund(quota, state, 0, 1).remaining, 5);
  EXPECT_TRUE(Acquire(quota, state, 0, 5).allowed());
  EXPECT_FALSE(Acquire(quota, state, 0, 1).allowed());
}

TEST(TokenBucket, FractionOfAnotherRefillIsRoundedAgainstTheKey) {
  TokenBucketState state;
  ASSERT_TRUE(Acquire(Bucket(1, 3), state, 0, 1).allowed());  // full at 333,333,333 1/3
  ASSERT_EQ(state.frac, 1U);
  EXPECT_EQ(Acquire(Bucket(1, 1), state, 0, 0).reset_after, nanoseconds(333'333'334));
}

TEST(TokenBucket, LargestNumbersStayExact) {
  // 2^40 permits in 2^40 * 2,870,146 ns = 99.99999 years.
  const Quota quota = Bucket(kMaxLimit, 1, nanoseconds(2'870'146));
  TokenBucketState state;
  const Nanos now = 5'000'000'000'000'000'000;  // the year 2128
  const Decision all = Acquire(quota, state, now, kMaxLimit);
  EXPECT_TRUE(all.allowed());
  EXPECT_EQ(all.reset_after, nanoseconds(kMaxLimit * 2'870'146));
  EXPECT_EQ(Acquire(quota, state, now, kMaxLimit).retry_after, nanoseconds(kMaxLimit * 2'870'146));
  EXPECT_EQ(Acquire(quota, state, now + 2'870'145, 1).retry_after, nanoseconds(1));
  EXPECT_TRUE(Acquire(quota, state, now + 2'870'146, 1).allowed());
}

TEST(TokenBucket, ClockAtTheEndsOfTimeIsSafe) {
  const Quota quota = Bucket(kMaxLimit, 1, nanoseconds(2'870'146));
  constexpr Nanos kEnds[] = {std::numeric_limits<Nanos>::max(), std::numeric_limits<Nanos>::min()};
  for (const Nanos now : kEnds) {
    for (const Nanos then : kEnds) {
      TokenBucketState state;
      EXPECT_TRUE(Acquire(quota, state, now, kMaxLimit).allowed());
      EXPECT_EQ(Acquire(quota, state, then, 1).allowed(), then > now);
    }
  }
}

}  // namespace
}  // namespace weir::algorithm
