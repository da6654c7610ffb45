#include "slots/time.h"

#include <gtest/gtest.h>

namespace weir::slots {
namespace {

constexpr Millis kNoon = 1'748'779'200'000;  // date -d 2025-06-01T12:00:00Z +%s

TEST(Instant, IsReadInAnyZone) {
  for (const char* text :
       {"2025-06-01T12:00:00Z", "2025-06-01T12:00Z", "2025-06-01T14:00:00+02:00",
        "2025-06-01T14:00:00+0200", "2025-06-01T14:00:00+02", "2025-06-01T06:30:00-05:30",
        "2025-06-01t12:00:00z", "2025-06-01 12:00:00.000Z", "2025-06-02T02:00:00+14:00"}) {
    Result<Millis> instant = ParseInstant(text);
    ASSERT_TRUE(instant.ok()) << text;
    EXPECT_EQ(*instant, kNoon) << text;
  }
}

TEST(Instant, FinerThanAMillisecondIsRoundedUp) {
  EXPECT_EQ(*ParseInstant("2025-06-01T12:00:00.001Z"), kNoon + 1);
  EXPECT_EQ(*ParseInstant("2025-06-01T12:00:00.0010000Z"), kNoon + 1);
  EXPECT_EQ(*ParseInstant("2025-06-01T12:00:00.0010001Z"), kNoon + 2);
  EXPECT_EQ(*ParseInstant("2025-06-01T12:00:00.000000001Z"), kNoon + 1);
  EXPECT_EQ(*ParseInstant("2025-06-01T12:00:00.9999Z"), kNoon + 1'000);
  EXPECT_EQ(*ParseInstant("2025-06-01T12:00:00.5Z"), kNoon + 500);
  EXPECT_EQ(*ParseInstant("2025-06-01T12:00:00,25Z"), kNoon + 250);
}

TEST(Instant, KnowsItsEnds) {
  EXPECT_EQ(*ParseInstant("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(*ParseInstant("9999-12-31T23:59:59.999Z"), kMaxInstant);
  EXPECT_FALSE(ParseInstant("9999-12-31T23:59:59.9991Z").ok());
  EXPECT_FALSE(ParseInstant("1969-12-31T23:59:59Z").ok());
  EXPECT_FALSE(ParseInstant("1970-01-01T00:00:00+01:00").ok());
}

TEST(Instant, KnowsLeapDays) {
  // 2024-02-29 is 31 + 28 days after 2024-01-01 = 1704067200.
  EXPECT_EQ(*ParseInstant("2024-02-29T00:00:00Z"), (1'704'067'200 + 59 * 86'400) * Millis{1'000});
  EXPECT_FALSE(ParseInstant("2025-02-29T00:00:00Z").ok());
  EXPECT_FALSE(ParseInstant("2100-02-29T00:00:00Z").ok());
}

TEST(Instant, AnythingElseIsRefused) {
  for (const char* text : {"",
                           "2025-06-01",
                           "2025-06-01T12:00:00",
                           "2025-06-01T12:00:00+",
                           "2025-06-01T12:00:00+2",
                           "2025-06-01T24:00:00Z",
                           "2025-06-01T12:60:00Z",
                           "2025-06-01T12:00:60Z",
                           "2025-13-01T12:00:00Z",
                           "2025-00-01T12:00:00Z",
                           "2025-06-00T12:00:00Z",
                           "2025-06-01T12:00:00.Z",
                           "2025-06-01T12:00:00Zx",
                           "2025-06-01T12:00:00+19:00",
                           "2025-06-01T12:00:00+02:60",
                           "25-06-01T12:00:00Z",
                           "2025-6-1T12:00:00Z",
                           "2025-06-01T12:00:00.1234567890123456789Z",
                           "now",
                           "1748779200000"}) {
    EXPECT_FALSE(ParseInstant(text).ok()) << text;
  }
}

TEST(Instant, IsWrittenInUtcWithAFractionOnlyIfThereIsOne) {
  EXPECT_EQ(FormatInstant(kNoon), "2025-06-01T12:00:00Z");
  EXPECT_EQ(FormatInstant(kNoon + 50), "2025-06-01T12:00:00.050Z");
  EXPECT_EQ(FormatInstant(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(FormatInstant(kMaxInstant), "9999-12-31T23:59:59.999Z");
  for (Millis instant : {Millis{1}, kNoon + 123, Millis{951'782'400'000}}) {
    EXPECT_EQ(*ParseInstant(FormatInstant(instant)), instant);
  }
}

TEST(Duration, IsRead) {
  EXPECT_EQ(*ParseDuration("PT4S"), 4'000);
  EXPECT_EQ(*ParseDuration("4s"), 4'000);
  EXPECT_EQ(*ParseDuration("1m500ms"), 60'500);
  EXPECT_EQ(*ParseDuration("PT0.25S"), 250);
  EXPECT_EQ(*ParseDuration("PT0.001S"), 1);
  EXPECT_EQ(*ParseDuration("PT1H30M"), 5'400'000);
  EXPECT_EQ(*ParseDuration("P1D"), 86'400'000);
  EXPECT_EQ(*ParseDuration("P1DT12H"), 129'600'000);
  EXPECT_EQ(*ParseDuration("P2W"), 1'209'600'000);
  EXPECT_EQ(*ParseDuration("PT90M"), 5'400'000);
}

TEST(Duration, AnythingElseIsRefused) {
  for (const char* text : {"",
                           "P",
                           "PT",
                           "4S",
                           "PT4",
                           "P4S",
                           "PT4D",
                           "PT-4S",
                           "P1Y",
                           "P1M",
                           "PT0S",
                           "PT0.0005S",
                           "PT1.5M",
                           "PT1S1M",
                           "PT1S1S",
                           "P1DT",
                           "PT1S ",
                           "pt1s",
                           "PT9999999999999S",
                           "P1W1Y"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

TEST(Duration, IsWrittenAsItCanBeRead) {
  EXPECT_EQ(FormatDuration(4'000), "PT4S");
  EXPECT_EQ(FormatDuration(250), "PT0.25S");
  EXPECT_EQ(FormatDuration(1), "PT0.001S");
  EXPECT_EQ(FormatDuration(5'400'000), "PT1H30M");
  EXPECT_EQ(FormatDuration(129'600'000), "PT36H");
  EXPECT_EQ(FormatDuration(61'010), "PT1M1.01S");
  for (Millis duration : {Millis{7}, Millis{59'999}, Millis{3'600'001}, Millis{86'400'000}}) {
    EXPECT_EQ(*ParseDuration(FormatDuration(duration)), duration);
  }
}

}  // namespace
}  // namespace weir::slots
