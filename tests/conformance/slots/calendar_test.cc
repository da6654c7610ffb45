#include <gmock/gmock.h>

#include <set>

#include "slots/config.h"
#include "store_fixture.h"

// Business time, on every store. Berlin is two hours ahead of UTC in June 2025.

namespace weir::slots {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr Millis kWindow = 4'000;

Millis At(std::string_view text) { return *ParseInstant(text); }

Config Bank(std::int64_t max, std::string_view hours = "08:00-17:00") {
  Config config{.name = "pay", .window_size = kWindow, .max_per_window = max, .headroom = 10'000};
  config.calendar = *ParseCalendar("Europe/Berlin MON-FRI " + std::string(hours) + " 2025-06-17");
  return *CheckConfig(config);
}

using Calendars = StoreTest;

TEST_P(Calendars, AConfigKeepsItsCalendar) {
  Config config = Bank(10);
  config.past = Past::kRefuse;
  client().Put(config);
  EXPECT_EQ(client().Get("pay")->calendar, config.calendar);
  EXPECT_EQ(client().Get("pay")->past, Past::kRefuse);
  config.calendar = {};
  config.past = Past::kKeep;
  client().Put(config);
  EXPECT_FALSE(client().Get("pay")->calendar.any());
}

TEST_P(Calendars, ASaturdayGoesToMonday) {
  client().Put(Bank(10));
  const Millis saturday = At("2025-06-14T15:00:00Z");
  const Answer answer = client().Assign(client().Ask("e", "pay", saturday));
  ASSERT_EQ(answer.outcome, Outcome::kNew);
  EXPECT_EQ(answer.slot.requested, saturday);
  EXPECT_EQ(answer.slot.window_start, At("2025-06-16T06:00:00Z"));
  // The same request gets the same answer, another time is a conflict.
  EXPECT_EQ(client().Assign(client().Ask("e", "pay", saturday)).outcome, Outcome::kExisting);
  EXPECT_EQ(client().Assign(client().Ask("e", "pay", saturday + 1)).outcome, Outcome::kConflict);
}

TEST_P(Calendars, WhatDoesNotFitBeforeTheCutOffGoesToTheNextOpening) {
  client().Put(Bank(2));
  // Monday, two windows before the cut-off; Tuesday is a holiday.
  const Millis late = At("2025-06-16T14:59:52Z");
  const auto answers = client().Assign(Asks(7, late));
  for (const Answer& answer : answers) EXPECT_EQ(answer.outcome, Outcome::kNew);
  const Millis wednesday = At("2025-06-18T06:00:00Z");
  EXPECT_THAT(Counts(), ElementsAre(Pair(late, 2), Pair(late + kWindow, 2), Pair(wednesday, 2),
                                    Pair(wednesday + kWindow, 1)));
}

TEST_P(Calendars, OneByOneGoesWhereABatchGoes) {
  client().Put(Bank(2));
  const Millis late = At("2025-06-16T14:59:52Z");
  for (const Ask& ask : Asks(7, late)) client().Assign(ask);
  const Millis wednesday = At("2025-06-18T06:00:00Z");
  EXPECT_THAT(Counts(), ElementsAre(Pair(late, 2), Pair(late + kWindow, 2), Pair(wednesday, 2),
                                    Pair(wednesday + kWindow, 1)));
}

TEST_P(Calendars, SlotsLieWithinOpenTimesAlsoWhereWindowsDoNotFitThem) {
  // Windows of 7 s divide neither opening nor cut-off.
  Config config = Bank(100, "08:00-08:02");
  config.window_size = 7'000;
  client().Put(config);
  std::vector<Ask> asks = Asks(1'000, At("2025-06-16T06:01:00Z"));
  for (Ask& ask : Asks(1'000, At("2025-06-15T00:00:00Z"), "early")) asks.push_back(ask);
  for (const Answer& answer : client().Assign(asks)) {
    if (answer.outcome != Outcome::kNew) continue;
    const Millis minute = answer.slot.scheduled % 86'400'000;
    EXPECT_GE(minute, 6 * 3'600'000) << FormatInstant(answer.slot.scheduled);
    EXPECT_LT(minute, 6 * 3'600'000 + 120'000) << FormatInstant(answer.slot.scheduled);
  }
}

TEST_P(Calendars, ANewCalendarCountsForTheNextEvent) {
  client().Put(Bank(10));
  const Millis saturday = At("2025-06-14T15:00:00Z");
  client().Assign(client().Ask("before", "pay", saturday));
  Config open = Bank(10);
  open.calendar = {};
  client().Put(open);
  EXPECT_EQ(client().Assign(client().Ask("at-once", "pay", saturday)).slot.window_start, saturday);
  client().Put(Bank(10));
  EXPECT_EQ(client().Assign(client().Ask("again", "pay", saturday)).slot.window_start,
            At("2025-06-16T06:00:00Z"));
}

TEST_P(Calendars, ReschedulingAndRestoringFollowTheCalendar) {
  client().Put(Bank(10));
  const Millis monday = At("2025-06-16T08:00:00Z");
  client().Assign(client().Ask("e", "pay", monday));
  auto moved = client().Reschedule({.event_id = "e", .requested = At("2025-06-21T10:00:00Z")});
  EXPECT_EQ(moved->slot.window_start, At("2025-06-23T06:00:00Z"));
  EXPECT_EQ(moved->slot.requested, At("2025-06-21T10:00:00Z"));
  client().Cancel("e");
  EXPECT_EQ(client().Restore({.event_id = "e"})->slot.window_start, At("2025-06-23T06:00:00Z"));
}

TEST_P(Calendars, ARetryFollowsTheCalendar) {
  client().Put(Bank(10));
  const Millis monday = At("2025-06-16T14:00:00Z");
  client().Assign(client().Ask("e", "pay", monday));
  const Claim claim = client().Claim({.config = "pay", .max = 1, .now = monday + kWindow});
  ASSERT_EQ(claim.events.size(), 1U);
  Finish end{.event_id = "e", .attempt = 1};
  end.failed = true;
  end.error = "away";
  end.retry_at = At("2025-06-16T15:00:00Z");
  EXPECT_THAT(client().Finish({end}), ElementsAre(Finished::kOk));
  EXPECT_EQ(client().Find("e")->window_start, At("2025-06-18T06:00:00Z"));
}

TEST_P(Calendars, NothingIsClaimedWhileClosed) {
  client().Put(Bank(10));
  const Millis monday = At("2025-06-16T14:59:52Z");
  client().Assign(Asks(10, monday));
  const auto claimed = [&](std::string_view now) {
    return client()
        .Claim({.config = "pay", .max = 2, .ahead = 60'000, .now = At(now)})
        .events.size();
  };
  EXPECT_EQ(claimed("2025-06-16T14:59:58Z"), 2U);
  EXPECT_EQ(claimed("2025-06-16T15:00:00Z"), 0U);  // overdue, but after the cut-off
  EXPECT_EQ(claimed("2025-06-17T10:00:00Z"), 0U);  // a holiday
  EXPECT_EQ(claimed("2025-06-18T05:59:59Z"), 0U);
  EXPECT_EQ(claimed("2025-06-18T06:00:00Z"), 2U);
}

TEST_P(Calendars, WhatIsOverdueIsExecutedBeforeTheCutOff) {
  Config config = Bank(1'000);
  config.window_size = 60'000 * 7;  // 16:56 to 17:03 in Berlin
  client().Put(config);
  client().Assign(Asks(200, At("2025-06-16T10:00:00Z")));
  const Claim claim = client().Claim(
      {.config = "pay", .max = 200, .now = At("2025-06-16T14:59:58Z"), .random = 12'345});
  EXPECT_EQ(claim.events.size(), 200U);
  EXPECT_EQ(claim.not_after, At("2025-06-16T15:00:00Z")) << "for who is slow to begin";
  for (const Claimed& event : claim.events) {
    EXPECT_LT(event.execute_at, At("2025-06-16T15:00:00Z")) << FormatInstant(event.execute_at);
  }
}

TEST_P(Calendars, TenantsShareOpenTimes) {
  Config config = Bank(4);
  config.tenants = {{"acme", 1}, {"globex", 1}};
  client().Put(*CheckConfig(config));
  const Millis late = At("2025-06-16T14:59:56Z");
  std::vector<Ask> asks = Asks(6, late, "a", "acme");
  for (Ask& ask : Asks(6, late, "g", "globex")) asks.push_back(ask);
  std::set<std::string> days;
  for (const Answer& answer : client().Assign(asks)) {
    ASSERT_EQ(answer.outcome, Outcome::kNew);
    days.insert(FormatInstant(answer.slot.window_start).substr(0, 10));
  }
  EXPECT_THAT(days, ElementsAre("2025-06-16", "2025-06-18"));
}

TEST_P(Calendars, ThePastIsRefusedOrMovedToNow) {
  Config config{.name = "pay", .window_size = kWindow, .max_per_window = 10};
  const Millis past = At("2025-06-16T10:00:00Z");
  client().Put(config);
  EXPECT_EQ(client().Assign(client().Ask("kept", "pay", past)).slot.window_start, past);

  config.past = Past::kRefuse;
  client().Put(config);
  const auto answers = client().Assign(
      std::vector{client().Ask("kept", "pay", past), client().Ask("late", "pay", past),
                  client().Ask("ahead", "pay", At("2099-01-01T00:00:00Z"))});
  EXPECT_EQ(answers[0].outcome, Outcome::kExisting);  // it was accepted before
  EXPECT_EQ(answers[1].outcome, Outcome::kPast);
  EXPECT_EQ(answers[2].outcome, Outcome::kNew);
  EXPECT_EQ(client().Assign(client().Ask("late", "pay", past)).outcome, Outcome::kPast);
  EXPECT_FALSE(client().Find("late"));
  EXPECT_EQ(client().Reschedule({.event_id = "kept", .requested = past})->outcome, Outcome::kPast);
  const Millis now = MachineMillis();  // which is past when the store looks at it
  EXPECT_EQ(client().Assign(client().Ask("now", "pay", now - 1)).outcome, Outcome::kNew);
  EXPECT_GE(client().Look("now")->slot.scheduled, now);
  EXPECT_EQ(client().Reschedule({.event_id = "kept", .requested = now - 1})->outcome,
            Outcome::kNew);

  config.past = Past::kNow;
  client().Put(config);
  const Answer moved = client().Assign(client().Ask("moved", "pay", past));
  EXPECT_EQ(moved.outcome, Outcome::kNew);
  EXPECT_EQ(moved.slot.requested, past);
  EXPECT_GT(moved.slot.scheduled, At("2026-01-01T00:00:00Z"));
}

INSTANTIATE_TEST_SUITE_P(Stores, Calendars, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
