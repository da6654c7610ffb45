#include "weir/quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <type_traits>
#include <utility>

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

void ExpectRefused(const Result<Quota>& quota, std::string_view argument, std::string_view range) {
  ASSERT_FALSE(quota.ok());
  EXPECT_EQ(quota.error().code, Code::kInvalidArgument);
  EXPECT_THAT(quota.error().message, HasSubstr(std::string(argument)));
  EXPECT_THAT(quota.error().message, HasSubstr(std::string(range)));
}

TEST(Quota, KeepsRefillAndPeriodInLowestTerms) {
  const Quota quota = Quota::TokenBucket(100, 10, seconds(1)).value();
  EXPECT_EQ(quota.algorithm(), Algorithm::kTokenBucket);
  EXPECT_EQ(quota.limit(), 100);
  EXPECT_EQ(quota.refill(), 1);
  EXPECT_EQ(quota.period(), milliseconds(100));
  EXPECT_EQ(quota.window(), seconds(10));
  EXPECT_EQ(quota, Quota::TokenBucket(100, 600, minutes(1)).value());
}

TEST(Quota, RefusesLimitsOutOfRangeByName) {
  const std::string range = "between 1 and 1099511627776";
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, kMaxLimit + 1, kHuge, -kHuge}) {
    ExpectRefused(Quota::TokenBucket(bad, 1), "capacity", range);
    ExpectRefused(Quota::TokenBucket(1, bad), "refill", range);
    ExpectRefused(Quota::FixedWindow(bad, seconds(1)), "limit", range);
    ExpectRefused(Quota::SlidingLog(bad, seconds(1)), "limit", range);
    ExpectRefused(Quota::SlidingCounter(bad, seconds(1)), "limit", range);
    ExpectRefused(Quota::Concurrency(bad, seconds(1)), "limit", range);
    ExpectRefused(Quota::AnchoredWindow(bad, seconds(1)), "limit", range);
  }
}

TEST(Quota, RefusesWindowsOutOfRangeByName) {
  const std::string range = "between 1 and 3155760000000000000 ns (100 years)";
  for (const nanoseconds bad : {nanoseconds(0), nanoseconds(-1), kMaxWindow + nanoseconds(1),
                                nanoseconds::max(), nanoseconds::min()}) {
    ExpectRefused(Quota::TokenBucket(1, 1, bad), "period", range);
    ExpectRefused(Quota::FixedWindow(1, bad), "window", range);
    ExpectRefused(Quota::SlidingLog(1, bad), "window", range);
    ExpectRefused(Quota::SlidingCounter(1, bad), "window", range);
    ExpectRefused(Quota::Concurrency(1, bad), "lease", range);
  }
}

TEST(Quota, TakesTheLargestNumbers) {
  EXPECT_TRUE(Quota::TokenBucket(kMaxLimit, kMaxLimit, seconds(1)).ok());
  EXPECT_TRUE(Quota::TokenBucket(1, 1, kMaxWindow).ok());
  EXPECT_TRUE(Quota::FixedWindow(kMaxLimit, kMaxWindow).ok());
  EXPECT_TRUE(Quota::SlidingLog(kMaxLimit, kMaxWindow).ok());
  EXPECT_TRUE(Quota::SlidingCounter(kMaxLimit, kMaxWindow, kMaxBuckets).ok());
  EXPECT_TRUE(Quota::Concurrency(kMaxLimit, kMaxWindow).ok());
}

TEST(Quota, RefusesBucketsOutOfRange) {
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-3}, kMaxBuckets + 1, kHuge}) {
    ExpectRefused(Quota::SlidingCounter(1, seconds(1), bad), "buckets", "between 1 and 1024");
  }
}

TEST(Quota, RefusesMoreBucketsThanNanoseconds) {
  ExpectRefused(Quota::SlidingCounter(1, nanoseconds(9), 10), "buckets",
                "nanoseconds of the window (9)");
  EXPECT_TRUE(Quota::SlidingCounter(1, nanoseconds(10), 10).ok());
}

TEST(Quota, RefusesABucketThatTakesMoreThanACenturyToFill) {
  ExpectRefused(Quota::TokenBucket(2, 1, kMaxWindow), "capacity 2", "fill within 100 years");
  EXPECT_TRUE(Quota::TokenBucket(36525, 1, hours(24)).ok());
  ExpectRefused(Quota::TokenBucket(36526, 1, hours(24)), "capacity 36526", "fill within 100 years");
}

TEST(Quota, RefusesARefillThatIsTooFineInLowestTerms) {
  EXPECT_TRUE(Quota::TokenBucket(1, 4'294'967'295, seconds(1)).ok());
  // 2^32 + 1 has no factor in common with 10^9 = 2^9 * 5^9: it ends in 7 and is odd.
  ExpectRefused(Quota::TokenBucket(1, 4'294'967'297, seconds(1)), "refill", "below 4294967296");
}

// If this compiled, it could change numbers that were never validated.
TEST(Quota, IsMadeByItsFactoriesAndHasNothingToChange) {
  static_assert(!std::is_default_constructible_v<Quota>);
  static_assert(!std::is_aggregate_v<Quota>);
  static_assert(!std::is_constructible_v<Quota, Algorithm, std::int64_t>);
  const Quota quota = Quota::FixedWindow(5, seconds(1)).value();
  static_assert(std::is_same_v<decltype(quota.limit()), std::int64_t>);
  static_assert(!std::is_reference_v<decltype(std::declval<Quota&>().limit())>);
  static_assert(!std::is_reference_v<decltype(std::declval<Quota&>().window())>);
  EXPECT_EQ(quota, Quota::FixedWindow(5, seconds(1)).value());
}

TEST(Quota, DescribesItselfToPeople) {
  EXPECT_EQ(Quota::TokenBucket(100, 10, seconds(1)).value().ToString(),
            "token_bucket(capacity=100, refill=10 per 1s)");
  EXPECT_EQ(Quota::FixedWindow(5, minutes(1)).value().ToString(),
            "fixed_window(limit=5, window=1m)");
  EXPECT_EQ(Quota::SlidingLog(5, seconds(90)).value().ToString(),
            "sliding_log(limit=5, window=90s)");
  EXPECT_EQ(Quota::SlidingCounter(5, hours(48), 7).value().ToString(),
            "sliding_counter(limit=5, window=2d, buckets=7)");
  EXPECT_EQ(Quota::Concurrency(5, nanoseconds(1'500)).value().ToString(),
            "concurrency(limit=5, lease=1500ns)");
}

}  // namespace
}  // namespace weir
