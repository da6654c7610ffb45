#include "admin/live_totals.h"

#include <gtest/gtest.h>

namespace weir::admin {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

TEST(LiveTotals, KeepsWhatEachSecondAdded) {
  RunningTotals totals;
  LiveTotals live({.read = [&] { return totals; }, .on_second = {}});
  totals.allowed = 10;
  totals.limited = 1;
  live.Tick(100 * kSecond);
  totals.allowed = 15;
  live.Tick(101 * kSecond);
  const auto last = live.Last(300);
  ASSERT_EQ(last.size(), 2U);
  EXPECT_EQ(last[0].second, 100);
  EXPECT_EQ(last[0].allowed, 10U);
  EXPECT_EQ(last[0].limited, 1U);
  EXPECT_EQ(last[1].allowed, 5U);
  EXPECT_EQ(last[1].limited, 0U);
}

TEST(LiveTotals, ForgetsAfterFiveMinutes) {
  LiveTotals live({.read = [] { return RunningTotals{}; }, .on_second = {}});
  for (int i = 0; i < 450; ++i) live.Tick(i * kSecond);
  const auto last = live.Last(1000);
  ASSERT_EQ(last.size(), 300U);
  EXPECT_EQ(last.front().second, 150);
  EXPECT_EQ(last.back().second, 449);
  EXPECT_EQ(live.Last(2).front().second, 448);
}

TEST(LiveTotals, PercentilesLieWithinTheirBuckets) {
  std::array<std::uint64_t, telemetry::kLatencyBounds.size() + 1> buckets{};
  EXPECT_EQ(Percentile(buckets, 0.5), 0);
  // 100 observations between 10 and 25 µs: the 50th lies halfway.
  buckets[1] = 100;
  EXPECT_DOUBLE_EQ(Percentile(buckets, 0.5), 17.5);
  // 99 of them there and one beyond the last bound of 1 s.
  buckets[1] = 99;
  buckets.back() = 1;
  EXPECT_DOUBLE_EQ(Percentile(buckets, 0.99), 25);
  EXPECT_DOUBLE_EQ(Percentile(buckets, 1), 1e6);
}

}  // namespace
}  // namespace weir::admin
