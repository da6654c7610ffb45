#include "base/instant.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

TEST(Instant, ReadsDatesByTheCalendar) {
  // 2000-03-01: 30 years of 365 days, 7 leap days (1972 … 1996), 31 days of January, 29 of
  // February.
  EXPECT_EQ(SecondsOf({.year = 2000, .month = 3}), (30 * 365 + 7 + 31 + 29) * 86'400);
  EXPECT_EQ(ParseInstant("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(ParseInstant("1970-01-02T00:00:01Z"), 86'401 * kSecond);
  EXPECT_EQ(ParseInstant("2000-03-01T00:00:00Z"), (30 * 365 + 67) * 86'400 * kSecond);
}

TEST(Instant, ReadsFractionsAndZones) {
  EXPECT_EQ(ParseInstant("1970-01-01T01:00:00.25+01:00"), kSecond / 4);
  EXPECT_EQ(ParseInstant("1970-01-01T01:00:00+0100"), 0);
  EXPECT_EQ(ParseInstant("1970-01-01T00:00:00-01"), 3600 * kSecond);
  EXPECT_EQ(ParseInstant("1970-01-01 00:00:00.000000001Z"), 1);
  EXPECT_EQ(ParseInstant("1970-01-01T00:00:00.0000000019Z"), 1);
}

TEST(Instant, RefusesWhatIsNone) {
  for (const char* text :
       {"", "1970-01-01", "1970-01-01T00:00:00", "1970-13-01T00:00:00Z", "1970-02-29T00:00:00Z",
        "1970-01-01T24:00:00Z", "1970-01-01T00:00:00.Z", "1970-01-01T00:00:00Zx",
        "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+01:00", "9999-01-01T00:00:00Z",
        "1970-01-01T00:00:00+24:00", "2016-12-31T23:59:60Z"}) {
    EXPECT_EQ(ParseInstant(text), std::nullopt) << text;
  }
}

TEST(Instant, WritesWhatItReads) {
  for (const char* text :
       {"1970-01-01T00:00:00Z", "2000-02-29T23:59:59Z", "2026-11-16T01:02:03.250Z",
        "2100-03-01T00:00:00Z", "2261-12-31T23:59:59.999Z"}) {
    ASSERT_TRUE(ParseInstant(text)) << text;
    EXPECT_EQ(FormatInstant(*ParseInstant(text)), text);
  }
}

}  // namespace
}  // namespace weir
