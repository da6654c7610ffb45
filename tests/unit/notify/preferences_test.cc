#include "notify/preferences.h"

#include <gmock/gmock.h>

#include "base/instant.h"
#include "notify/event.h"

namespace weir::notify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Micros At(std::string_view text) { return ParseInstant(text).value() / 1000; }

std::string EndAfter(const QuietHours& quiet, std::string_view now) {
  return FormatTime(EndOfQuiet(quiet, At(now)));
}

TEST(QuietHours, ANightEndsInTheMorningOfItsZone) {
  const QuietHours night{22 * 60, 7 * 60, "Europe/Berlin"};  // +01:00 in winter
  EXPECT_EQ(EndAfter(night, "2026-01-10T21:30:00Z"), "2026-01-11T06:00:00.000Z");
  EXPECT_EQ(EndAfter(night, "2026-01-11T02:00:00Z"), "2026-01-11T06:00:00.000Z");
  EXPECT_EQ(EndAfter(night, "2026-01-11T05:59:59Z"), "2026-01-11T06:00:00.000Z");
}

TEST(QuietHours, OutsideOfThemNothingIsDelayed) {
  const QuietHours night{22 * 60, 7 * 60, "Europe/Berlin"};
  for (const char* now : {"2026-01-11T06:00:00Z", "2026-01-11T12:00:00Z", "2026-01-11T20:59:00Z"}) {
    EXPECT_EQ(EndOfQuiet(night, At(now)), At(now)) << now;
  }
}

TEST(QuietHours, AnAfternoonIsWithinOneDay) {
  const QuietHours nap{13 * 60, 15 * 60, "Asia/Tokyo"};  // +09:00
  EXPECT_EQ(EndAfter(nap, "2026-06-01T04:00:00Z"), "2026-06-01T06:00:00.000Z");
  EXPECT_EQ(EndAfter(nap, "2026-06-01T06:00:00Z"), "2026-06-01T06:00:00.000Z");
  EXPECT_EQ(EndAfter(nap, "2026-06-01T03:59:00Z"), "2026-06-01T03:59:00.000Z");
}

// On 2026-03-29 Berlin goes from 02:00 to 03:00, on 2026-10-25 from 03:00 back to 02:00.
TEST(QuietHours, EndByTheWallClockOnDaysWhenItChanges) {
  const QuietHours night{22 * 60, 7 * 60, "Europe/Berlin"};
  EXPECT_EQ(EndAfter(night, "2026-03-28T22:00:00Z"), "2026-03-29T05:00:00.000Z");
  EXPECT_EQ(EndAfter(night, "2026-10-24T21:00:00Z"), "2026-10-25T06:00:00.000Z");
  const QuietHours skipped{0, 2 * 60 + 30, "Europe/Berlin"};
  EXPECT_EQ(EndAfter(skipped, "2026-03-29T00:00:00Z"), "2026-03-29T01:00:00.000Z");
  // 02:30 occurs twice; it is quiet until the first, and what follows is not held for a day.
  EXPECT_EQ(EndAfter(skipped, "2026-10-25T00:00:00Z"), "2026-10-25T00:30:00.000Z");
  EXPECT_EQ(EndAfter(skipped, "2026-10-25T01:10:00Z"), "2026-10-25T01:10:00.000Z");
}

TEST(Preferences, AnOptOutIsOfAChannelOrOfAll) {
  EXPECT_TRUE((Preferences{.user_id = "u", .opted_out = {"sms"}}).OptedOut("sms"));
  EXPECT_FALSE((Preferences{.user_id = "u", .opted_out = {"sms"}}).OptedOut("email"));
  EXPECT_TRUE((Preferences{.user_id = "u", .opted_out = {"*"}}).OptedOut("email"));
}

TEST(Preferences, SayWhatIsWrong) {
  const auto problem = [](const Preferences& given) {
    const Status status = CheckPreferences(given);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_THAT(problem({.user_id = "u", .quiet = QuietHours{0, 60, "Europe/Berlin"}}), IsEmpty());
  EXPECT_THAT(problem({.user_id = "u", .quiet = QuietHours{0, 60, "Europe/Berl"}}),
              HasSubstr("Europe/Berl"));
  EXPECT_THAT(problem({.user_id = "u", .quiet = QuietHours{0, 60, "../../etc/passwd"}}),
              HasSubstr("time zone"));
  EXPECT_THAT(problem({.user_id = "u", .quiet = QuietHours{60, 60, "UTC"}}),
              HasSubstr("same time"));
  EXPECT_THAT(problem({.user_id = "u", .opted_out = {"SMS!"}}), HasSubstr("optOut"));
  EXPECT_THAT(problem({.user_id = ""}), HasSubstr("userId"));
}

TEST(TimeOfDay, IsReadAndWritten) {
  EXPECT_EQ(*ParseTimeOfDay("07:05"), 425);
  EXPECT_EQ(FormatTimeOfDay(425), "07:05");
  for (const char* wrong : {"", "7:05", "24:00", "07:60", "07-05", "07:0x", "-1:00"}) {
    EXPECT_FALSE(ParseTimeOfDay(wrong).ok()) << wrong;
  }
}

TEST(Channels, AreJoinedAndSplit) {
  EXPECT_EQ(JoinChannels({"sms", "*"}), "sms,*");
  EXPECT_THAT(SplitChannels("sms,*"), ElementsAre("sms", "*"));
  EXPECT_THAT(SplitChannels(""), IsEmpty());
}

}  // namespace
}  // namespace weir::notify
