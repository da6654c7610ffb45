#include "slots/forecast.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::slots {
namespace {

const Config kConfig{.name = "pay", .window_size = 4'000, .max_per_window = 100};

TEST(Forecast, OnEmptyWindowsIsArithmetic) {
  // 500,000 / 100 = 5,000 windows: the last one begins 4,999 × 4 s after the first.
  Forecast forecast(kConfig, 4'000'000, 500'000);
  forecast.Finish();
  EXPECT_EQ(forecast.windows(), 5'000);
  EXPECT_EQ(forecast.first_window(), 4'000'000);
  EXPECT_EQ(forecast.last_window(), 4'000'000 + 4'999 * 4'000);
  EXPECT_EQ(forecast.finished_by(), 4'000'000 + 5'000 * 4'000);
  EXPECT_EQ(forecast.unplaced(), 0);
}

TEST(Forecast, CountsTheRestOfTheFirstWindowInProportion) {
  // 1 s of 4 is left: 25 places; 126 events need 25 + 100 + 1.
  Forecast forecast(kConfig, 4'003'000, 126);
  forecast.Finish();
  EXPECT_EQ(forecast.windows(), 3);
  EXPECT_EQ(forecast.last_window(), 4'008'000);
}

TEST(Forecast, GoesAroundWhatIsTaken) {
  // Windows 0 and 2 are full, 1 has no row, 3 has 40 left, then there are no rows any more.
  const std::vector<WindowLoad> rows = {{4'000'000, 4'000, 100, 0, false},
                                        {4'008'000, 4'000, 60, 40, false},
                                        {4'012'000, 4'000, 60, 0, true}};
  Forecast forecast(kConfig, 4'000'000, 141);
  forecast.Add(rows);
  EXPECT_FALSE(forecast.done());
  forecast.Finish();
  EXPECT_EQ(forecast.first_window(), 4'004'000);
  EXPECT_EQ(forecast.windows(), 3);  // 100 + 40 + 1
  EXPECT_EQ(forecast.last_window(), 4'016'000);
}

TEST(Forecast, EndsWithTime) {
  Forecast forecast(kConfig, kMaxInstant - 5'000, 1'000'000);
  forecast.Finish();
  EXPECT_GT(forecast.unplaced(), 0);
}

}  // namespace
}  // namespace weir::slots
