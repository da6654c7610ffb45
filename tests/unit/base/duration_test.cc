#include "base/duration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

nanoseconds Parsed(std::string_view text) {
  const Result<nanoseconds> duration = ParseDuration(text);
  EXPECT_TRUE(duration.ok()) << text << ": " << duration.error().message;
  return duration.ok() ? *duration : nanoseconds(-1);
}

TEST(Duration, ReadsNumbersWithUnits) {
  EXPECT_EQ(Parsed("500ms"), 500ms);
  EXPECT_EQ(Parsed("10s"), 10s);
  EXPECT_EQ(Parsed("1m"), 60s);
  EXPECT_EQ(Parsed("2h"), 7200s);
  EXPECT_EQ(Parsed("1d"), 86400s);
  EXPECT_EQ(Parsed("1w"), 604800s);
  EXPECT_EQ(Parsed("7us"), 7us);
  EXPECT_EQ(Parsed("9ns"), 9ns);
  EXPECT_EQ(Parsed("1h30m"), 5400s);
  EXPECT_EQ(Parsed("1m500ms"), 60500ms);
}

TEST(Duration, ReadsIso8601) {
  EXPECT_EQ(Parsed("PT10S"), 10s);
  EXPECT_EQ(Parsed("PT1M30S"), 90s);
  EXPECT_EQ(Parsed("PT0.5S"), 500ms);
  EXPECT_EQ(Parsed("PT1M1,25S"), 61'250ms);
  EXPECT_EQ(Parsed("PT0.000000001S"), 1ns);
  EXPECT_EQ(Parsed("PT1.5000000000S"), 1'500ms);
  EXPECT_EQ(Parsed("P1D"), 86400s);
  EXPECT_EQ(Parsed("P1W"), 604800s);
  EXPECT_EQ(Parsed("P1DT2H"), 93600s);
}

TEST(Duration, RefusesWhatIsNotClear) {
  for (const char* text : {"",         "10",
                           "s",        "1.5s",
                           "-1s",      "10 s",
                           "1s1h",     "1s1s",
                           "1mm",      "P",
                           "PT",       "P1",
                           "P1H",      "PT1D",
                           "PT1S1M",   "P1DT",
                           "PTT1S",    "PT.5S",
                           "PT1.S",    "PT0.5M",
                           "PT0.5",    "PT0.0000000001S",
                           "PT1.5.5S", "1s ",
                           "0x1s"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
  EXPECT_THAT(ParseDuration("10").error().message, HasSubstr("unit"));
}

TEST(Duration, RefusesZeroAndMoreThanAHundredYears) {
  EXPECT_THAT(ParseDuration("0s").error().message, HasSubstr("longer than zero"));
  EXPECT_TRUE(ParseDuration("36525d").ok());  // 100 years
  EXPECT_FALSE(ParseDuration("36526d").ok());
  EXPECT_FALSE(ParseDuration("9223372036854775807w").ok());
  EXPECT_FALSE(ParseDuration("99999999999999999999s").ok());
  EXPECT_FALSE(ParseDuration("P99999999999D").ok());
}

TEST(Duration, FormatsWhatItReads) {
  EXPECT_EQ(FormatDuration(90s), "1m30s");
  EXPECT_EQ(FormatDuration(24h), "1d");
  EXPECT_EQ(FormatDuration(1500ms), "1s500ms");
  EXPECT_EQ(FormatDuration(0s), "0s");
}

}  // namespace
}  // namespace weir
