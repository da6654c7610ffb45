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

// A request must not keep the store's thread busy, however far the next row is.
TEST(Forecast, AGapIsArithmeticHoweverLong) {
  constexpr std::int64_t kCount = 1'000'000'000'000;  // a window of 1 ms for each, since 1970
  const Config small{.name = "pay", .window_size = 1, .max_per_window = 1};
  Forecast forecast(small, 0, kCount);
  forecast.Add(std::vector<WindowLoad>{{kCount / 2, 1, 1, 0, false}, {kCount * 3, 1, 1, 0, false}});
  EXPECT_TRUE(forecast.done());
  EXPECT_EQ(forecast.windows(), kCount);
  EXPECT_EQ(forecast.first_window(), 0);
  EXPECT_EQ(forecast.last_window(), kCount);  // all but one of those up to there
}

TEST(Forecast, AGapWithACalendarCountsOpenTimesOnly) {
  Config bank = kConfig;
  bank.calendar = *ParseCalendar("UTC MON-FRI 08:00-08:01");  // 15 windows a day
  constexpr Millis kMonday = 1'748'822'400'000;               // 2025-06-02T00:00:00Z
  constexpr Millis kEight = 8 * 3'600'000;
  constexpr Millis kDay = 86'400'000;
  // Monday to Friday 1,500 each; the row is on the Monday after. 7,601 need one event of its 40.
  Forecast forecast(bank, kMonday, 7'601);
  forecast.Add(std::vector<WindowLoad>{{kMonday + 7 * kDay + kEight + 4'000, 4'000, 60, 0, true}});
  EXPECT_TRUE(forecast.done());
  EXPECT_EQ(forecast.first_window(), kMonday + kEight);
  EXPECT_EQ(forecast.windows(), 5 * 15 + 2);
  EXPECT_EQ(forecast.last_window(), kMonday + 7 * kDay + kEight + 4'000);
}

// Importing this many is refused: it must not be promised.
TEST(Forecast, EndsWithTheLastOpenTimeThatASearchCovers) {
  Config bank = kConfig;
  bank.calendar = *ParseCalendar("UTC MON-FRI 08:00-08:01");  // 15 windows, 1,500 events a day
  Forecast forecast(bank, *ParseInstant("2025-06-02T00:00:00Z"), 32 * 1'500 + 1);
  forecast.Finish();
  EXPECT_EQ(forecast.windows(), 32 * 15);
  EXPECT_EQ(forecast.unplaced(), 1);
  // Six weeks of five days and two more.
  EXPECT_EQ(FormatInstant(forecast.last_window()), "2025-07-15T08:00:56Z");
}

// Any client that may place an event may place one thousands of years ahead. The open times until
// then are too many to iterate over.
TEST(Forecast, AGapWithACalendarIsNotCountedForThousandsOfYears) {
  Config bank = kConfig;
  bank.calendar = *ParseCalendar("UTC MON-SUN 08:00-08:01");  // 15 windows a day
  constexpr Millis kFar = 253'399'622'400'000;                // 9999-12-01T00:00:00Z
  Forecast forecast(bank, 0, 1'000'000'000'000);
  forecast.Add(std::vector<WindowLoad>{{kFar + 8 * 3'600'000, 4'000, 1, 0, true}});
  forecast.Finish();
  EXPECT_EQ(forecast.windows(), 32 * 15);
  EXPECT_EQ(forecast.unplaced(), 1'000'000'000'000 - 32 * 15 * 100);
}

TEST(Forecast, EndsWithTime) {
  Forecast forecast(kConfig, kMaxInstant - 5'000, 1'000'000);
  forecast.Finish();
  EXPECT_GT(forecast.unplaced(), 0);
}

Config Bank() {
  Config config = kConfig;
  config.calendar = *ParseCalendar("Europe/Berlin MON-FRI 08:00-17:00");
  return config;
}

TEST(Forecast, ClosedTimesTakeNothing) {
  // 9 h × 900 windows an hour × 100 = 810,000 a day. From Friday 16:00 on, 90,000 fit on that day;
  // the rest of 100,000 takes 100 windows from Monday 08:00 on.
  Forecast forecast(Bank(), *ParseInstant("2025-06-13T14:00:00Z"), 100'000);
  forecast.Finish();
  EXPECT_EQ(forecast.windows(), 1'000);
  EXPECT_EQ(FormatInstant(forecast.first_window()), "2025-06-13T14:00:00Z");
  EXPECT_EQ(FormatInstant(forecast.last_window()), "2025-06-16T06:06:36Z");
  EXPECT_EQ(forecast.unplaced(), 0);
}

TEST(Forecast, RowsInClosedTimesAreNotFilled) {
  const Millis friday = *ParseInstant("2025-06-13T14:59:56Z");
  const Millis monday = *ParseInstant("2025-06-16T06:00:00Z");
  const std::vector<WindowLoad> rows = {{friday, 4'000, 99, 0, true},
                                        {friday + 4'000, 4'000, 0, 0, true},
                                        {monday, 4'000, 98, 0, true}};
  Forecast forecast(Bank(), friday, 4);
  forecast.Add(rows);
  forecast.Finish();
  EXPECT_EQ(forecast.windows(), 3);
  EXPECT_EQ(forecast.last_window(), monday + 4'000);
}

}  // namespace
}  // namespace weir::slots
