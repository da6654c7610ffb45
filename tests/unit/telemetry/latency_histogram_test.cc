#include "telemetry/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace weir::telemetry {
namespace {

TEST(LatencyHistogram, SmallValuesAreExact) {
  LatencyHistogram histogram;
  for (int i = 1; i <= 100; ++i) histogram.Add(i);
  EXPECT_EQ(histogram.Percentile(0.5), 50U);
  EXPECT_EQ(histogram.Percentile(0.99), 99U);
  EXPECT_EQ(histogram.Percentile(1), 100U);
}

TEST(LatencyHistogram, PercentilesAreAtMostOnePartTooLarge) {
  LatencyHistogram histogram;
  LatencyHistogram other;
  std::vector<std::int64_t> values;
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> shape(10, 3);
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(static_cast<std::int64_t>(shape(random)));
    (i % 2 == 0 ? histogram : other).Add(values.back());
  }
  histogram.Merge(other);
  std::sort(values.begin(), values.end());
  for (const double part : {0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    // The exact quantile: the ceil(part × n)-th value.
    const auto exact = static_cast<double>(
        values[static_cast<std::size_t>(part * static_cast<double>(values.size()) - 1e-9)]);
    const auto found = static_cast<double>(histogram.Percentile(part));
    EXPECT_GE(found, exact);
    EXPECT_LE(found, exact * (1 + 1.0 / 128) + 1);
  }
  EXPECT_EQ(histogram.count(), 10'000U);
}

TEST(LatencyHistogram, TakesAnyNumber) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Percentile(0.5), 0U);
  histogram.Add(-5);
  histogram.Add(INT64_MAX);
  EXPECT_EQ(histogram.Percentile(0.5), 0U);
  EXPECT_EQ(histogram.Percentile(1), static_cast<std::uint64_t>(INT64_MAX));
}

}  // namespace
}  // namespace weir::telemetry
