#include "slots/calendar.h"

#include <gtest/gtest.h>

#include "slots/timing.h"

// Expected values were calculated by hand from printed calendars and the dates of clock
// changes, not by a program.

namespace weir::slots {
namespace {

Millis At(std::string_view text) {
  const Result<Millis> instant = ParseInstant(text);
  EXPECT_TRUE(instant.ok()) << text;
  return instant.ok() ? *instant : 0;
}

Calendar Of(std::string_view text) {
  Result<Calendar> calendar = ParseCalendar(text);
  EXPECT_TRUE(calendar.ok()) << text;
  if (!calendar.ok()) return {};
  calendar = CheckCalendar(std::move(*calendar), 4'000);
  EXPECT_TRUE(calendar.ok()) << (calendar.ok() ? "" : calendar.error().message);
  return calendar.ok() ? *calendar : Calendar{};
}

/// When an event that requests `requested` may be executed, as text.
std::string Goes(const std::string& calendar, const std::string& requested) {
  const Config config{
      .name = "pay", .window_size = 4'000, .max_per_window = 1, .calendar = Of(calendar)};
  return FormatInstant(*Timing(config, 0).Earliest(At(requested)));
}

constexpr const char* kBerlin = "Europe/Berlin MON-FRI 08:00-17:00";
constexpr const char* kNewYork = "America/New_York MON-FRI 08:00-17:00";

TEST(Calendar, SaturdayGoesToMondayMorningInTheBanksZone) {
  // Saturday 14 June 2025, 17:00 in Berlin, which is two hours ahead in summer.
  EXPECT_EQ(Goes(kBerlin, "2025-06-14T17:00:00+02:00"), "2025-06-16T06:00:00Z");
  // The same day of the week in winter, one hour ahead.
  EXPECT_EQ(Goes(kBerlin, "2025-01-11T17:00:00+01:00"), "2025-01-13T07:00:00Z");
}

TEST(Calendar, OpenTimesStayAsTheyAre) {
  EXPECT_EQ(Goes(kBerlin, "2025-06-16T06:00:00Z"), "2025-06-16T06:00:00Z");
  EXPECT_EQ(Goes(kBerlin, "2025-06-16T14:59:59.999Z"), "2025-06-16T14:59:59.999Z");
}

TEST(Calendar, TheCutOffItselfIsTooLateAndBeforeOpeningWaits) {
  EXPECT_EQ(Goes(kBerlin, "2025-06-16T15:00:00Z"), "2025-06-17T06:00:00Z");
  EXPECT_EQ(Goes(kBerlin, "2025-06-16T05:59:59.999Z"), "2025-06-16T06:00:00Z");
}

TEST(Calendar, TheClocksGoForwardOverAWeekend) {
  // 30 March 2025: Friday evening is winter time, Monday morning summer time.
  EXPECT_EQ(Goes(kBerlin, "2025-03-28T18:00:00+01:00"), "2025-03-31T06:00:00Z");
}

TEST(Calendar, TheClocksGoBackOverAWeekend) {
  // 26 October 2025: Friday evening is summer time, Monday morning winter time.
  EXPECT_EQ(Goes(kBerlin, "2025-10-24T18:00:00+02:00"), "2025-10-27T07:00:00Z");
}

TEST(Calendar, AnHourThatIsSkippedOpensAtTheChange) {
  // 02:30 does not exist on 30 March 2025; the clocks change at 01:00 UTC.
  EXPECT_EQ(Goes("Europe/Berlin MON-SUN 02:30-17:00", "2025-03-30T00:00:00Z"),
            "2025-03-30T01:00:00Z");
  // Nor does a cut-off at 02:30: nothing is executed from 01:00 UTC on until the next day.
  EXPECT_EQ(Goes("Europe/Berlin MON-SUN 00:00-02:30", "2025-03-30T00:59:59Z"),
            "2025-03-30T00:59:59Z");
  EXPECT_EQ(Goes("Europe/Berlin MON-SUN 00:00-02:30", "2025-03-30T01:00:00Z"),
            "2025-03-30T22:00:00Z");
}

TEST(Calendar, AnHourThatComesTwiceOpensAndEndsTheFirstTime) {
  // 02:30 on 26 October 2025 is 00:30 UTC and again 01:30 UTC.
  EXPECT_EQ(Goes("Europe/Berlin MON-SUN 02:30-17:00", "2025-10-26T00:00:00Z"),
            "2025-10-26T00:30:00Z");
  EXPECT_EQ(Goes("Europe/Berlin MON-SUN 01:00-02:30", "2025-10-26T00:30:00Z"),
            "2025-10-27T00:00:00Z");
}

TEST(Calendar, ALeapDayIsADayLikeAnyOther) {
  // 28 February 2028 is a Monday; New York is five hours behind.
  EXPECT_EQ(Goes(kNewYork, "2028-02-28T18:00:00-05:00"), "2028-02-29T13:00:00Z");
  EXPECT_EQ(Goes(std::string(kNewYork) + " 2028-02-29", "2028-02-28T18:00:00-05:00"),
            "2028-03-01T13:00:00Z");
  // Not in 2027: Friday 26 February is followed by Monday 1 March.
  EXPECT_EQ(Goes(kNewYork, "2027-02-26T18:00:00-05:00"), "2027-03-01T13:00:00Z");
}

TEST(Calendar, TheYearEnds) {
  // Friday 31 December 2027; 1 January 2028 is a Saturday.
  EXPECT_EQ(Goes(kNewYork, "2027-12-31T17:30:00-05:00"), "2028-01-03T13:00:00Z");
  // In Auckland, 13 hours ahead in summer, the year ends while UTC still has 31 December.
  EXPECT_EQ(Goes("Pacific/Auckland MON-FRI 08:00-17:00 2026-01-01 2026-01-02",
                 "2025-12-31T17:00:00+13:00"),
            "2026-01-04T19:00:00Z");
}

TEST(Calendar, HolidaysChainWithWeekends) {
  const std::string christmas =
      std::string(kBerlin) + " 2025-12-24@12:00 2025-12-25 2025-12-26 2026-01-01";
  // Wednesday the 24th has a separate cut-off; Thursday and Friday are holidays.
  EXPECT_EQ(Goes(christmas, "2025-12-24T11:59:59+01:00"), "2025-12-24T10:59:59Z");
  EXPECT_EQ(Goes(christmas, "2025-12-24T12:00:00+01:00"), "2025-12-29T07:00:00Z");
  // Good Friday, weekend, Easter Monday.
  EXPECT_EQ(Goes(std::string(kBerlin) + " 2025-04-18 2025-04-21", "2025-04-17T17:00:00+02:00"),
            "2025-04-22T06:00:00Z");
}

TEST(Calendar, ZonesOfHalfHoursAndDaysThatNeverWere) {
  EXPECT_EQ(Goes("Asia/Kolkata MON-FRI 08:00-17:00", "2025-06-14T00:00:00Z"),
            "2025-06-16T02:30:00Z");
  // Samoa skipped Friday 30 December 2011: Thursday evening is followed by Monday 2 January.
  EXPECT_EQ(Goes("Pacific/Apia MON-FRI 08:00-17:00", "2011-12-29T18:00:00-10:00"),
            "2012-01-01T18:00:00Z");
}

TEST(Calendar, DaysWithoutABreakAreOneOpenTime) {
  OpenTimes open(Of("Europe/Berlin MON-FRI 00:00-24:00"));
  const std::optional<OpenTime> week = open.At(At("2025-06-14T12:00:00Z"));
  ASSERT_TRUE(week);
  EXPECT_EQ(FormatInstant(week->from), "2025-06-15T22:00:00Z");
  EXPECT_EQ(FormatInstant(week->until), "2025-06-20T22:00:00Z");
}

TEST(Calendar, OpenTimesAreListedOnceAndInOrder) {
  OpenTimes open(Of(kBerlin));
  const std::vector<Millis> instants = {At("2025-06-13T12:00:00Z"), At("2025-06-14T12:00:00Z"),
                                        At("2025-06-25T12:00:00Z")};
  std::vector<std::string> from;
  for (const OpenTime& time : open.List(instants, 2)) from.push_back(FormatInstant(time.from));
  EXPECT_EQ(from, (std::vector<std::string>{"2025-06-13T06:00:00Z", "2025-06-16T06:00:00Z",
                                            "2025-06-17T06:00:00Z", "2025-06-25T06:00:00Z",
                                            "2025-06-26T06:00:00Z"}));
}

TEST(Calendar, TextComesBackAsItWas) {
  const std::string text =
      "Europe/Berlin MON,TUE,WED,THU,FRI 08:00-17:00 2025-12-24@12:00 2025-12-25";
  EXPECT_EQ(FormatCalendar(Of(text)), text);
  EXPECT_EQ(FormatCalendar(Of("UTC SAT-MON 00:00-24:00")), "UTC MON,SAT,SUN 00:00-24:00");
  EXPECT_FALSE(Of("").any());
}

// The next Monday is in the year 10000, which cannot be read or written.
TEST(Calendar, IsNotOpenAfterTheLastTimeThereIs) {
  OpenTimes open(Of("UTC MON 00:00-24:00"));
  EXPECT_FALSE(open.At(At("9999-12-31T00:00:00Z")));
  EXPECT_TRUE(open.At(At("9999-12-27T00:00:00Z")));
  OpenTimes always(Of("UTC MON-SUN 00:00-24:00"));
  ASSERT_TRUE(always.At(kMaxInstant));
  EXPECT_EQ(always.At(kMaxInstant)->until, kMaxInstant + 1);
}

TEST(Calendar, NonsenseIsRefused) {
  for (const char* text :
       {"Europe/Berlin", "Europe/Berlin MON-FRI", "Europe/Berlin WORKDAYS 08:00-17:00",
        "Europe/Berlin MON 8:00-17:00", "Europe/Berlin MON 08:00-24:01",
        "Europe/Berlin MON 08:00-17:00 2025-02-29", "Europe/Berlin MON 08:00-17:00 25-12-25",
        "Europe/Berlin MON 08:00-17:00 2025-12-24@noon"}) {
    EXPECT_FALSE(ParseCalendar(text).ok()) << text;
  }
  const auto refused = [](const char* text, Millis window) {
    return !CheckCalendar(*ParseCalendar(text), window).ok();
  };
  EXPECT_TRUE(refused("Europe/Atlantis MON 08:00-17:00", 4'000));
  EXPECT_TRUE(refused("../etc/passwd MON 08:00-17:00", 4'000));
  // The time zone library accepts these names, but they are paths, or this machine's zone.
  EXPECT_TRUE(refused("file:/usr/share/zoneinfo/UTC MON 08:00-17:00", 4'000));
  EXPECT_TRUE(refused("libc:localtime MON 08:00-17:00", 4'000));
  EXPECT_FALSE(refused("Fixed/UTC+05:30:00 MON 08:00-17:00", 4'000));
  Calendar zero = *ParseCalendar("UTC MON 08:00-17:00");
  zero.zone += '\0';
  EXPECT_FALSE(CheckCalendar(zero, 4'000).ok());
  EXPECT_TRUE(refused("UTC MON 17:00-08:00", 4'000));
  EXPECT_TRUE(refused("UTC MON 08:00-08:05", 200'000));
  EXPECT_TRUE(refused("UTC MON 08:00-17:00", 3'600'001));
  EXPECT_TRUE(refused("UTC MON 08:00-17:00 2025-12-25 2025-12-25@12:00", 4'000));
}

TEST(Timing, ThePastIsKeptMovedOrRefused) {
  Config config{.name = "pay", .window_size = 4'000, .max_per_window = 1};
  const Millis now = At("2025-06-16T12:00:00Z");
  EXPECT_EQ(Timing(config, now).Earliest(now - 1), now - 1);
  config.past = Past::kNow;
  EXPECT_EQ(Timing(config, now).Earliest(now - 1), now);
  config.past = Past::kRefuse;
  EXPECT_EQ(Timing(config, now).Earliest(now - kOnTheWay - 1), std::nullopt);
  EXPECT_EQ(Timing(config, now).Earliest(now - kOnTheWay), now) << "it was now when it was sent";
  EXPECT_EQ(Timing(config, now).Earliest(now), now);
  // A time that was accepted once is not refused later.
  EXPECT_EQ(Timing(config, now).Again(now - 1), now);
}

}  // namespace
}  // namespace weir::slots
