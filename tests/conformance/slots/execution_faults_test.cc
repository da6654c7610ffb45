#include <gmock/gmock.h>

#include "execution_fixture.h"

// Executions under faults: a wrong clock, a dispatcher that disappeared, a backlog of one tenant.
// On every store.

namespace weir::slots {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr Millis kHour = 3'600'000;

class ExecutionFaults : public Execution {
 protected:
  std::vector<std::string> Changes(const std::string& event) {
    std::vector<std::string> what;
    const Event seen = *client().Look(event);
    for (const Change& change : seen.history) what.push_back(change.what);
    return what;
  }
};

// For a moment the clock was an hour fast, and executions at that time are counted an hour ahead.
TEST_P(ExecutionFaults, AClockThatIsSetBackDoesNotStopExecutions) {
  client().Put(Pay(2));
  client().Assign(Asks(4, kNoon));
  const Claim fast = ClaimAt(kNoon + kHour);
  ASSERT_THAT(fast.events, SizeIs(2));
  AllDone(fast, kNoon + kHour);
  EXPECT_THAT(ClaimAt(kNoon + kHour).events, SizeIs(0)) << "that window is full";

  EXPECT_THAT(ClaimAt(kNoon + 3 * kWindow).events, SizeIs(2));
}

// A claim ends with its lease at the latest: it may be executed in windows that begin before that.
TEST_P(ExecutionFaults, AClockThatIsSetBackByLessThanALeaseKeepsTheCapOfLaterWindows) {
  client().Put(Pay(2));
  client().Assign(Asks(4, kNoon));
  const Claim fast = ClaimAt(kNoon + 4 * kWindow);
  ASSERT_THAT(fast.events, SizeIs(2));
  EXPECT_THAT(ClaimAt(kNoon + 3 * kWindow).events, SizeIs(0));
}

// A window grants one. All events of "bulk" are older than that of "small".
TEST_P(ExecutionFaults, ATenantIsNotStarvedByAnothersBacklogHoweverSmallTheCap) {
  Config config = Pay(1);
  config.tenants = {{"bulk", 1}, {"small", 1}, {"*", 1}};
  client().Put(config);
  std::vector<Ask> asks;
  for (int i = 0; i < 60; ++i) {
    asks.push_back(client().Ask("bulk-" + std::to_string(i), "pay", kNoon, "bulk"));
  }
  asks.push_back(client().Ask("small", "pay", kNoon + 100 * kWindow, "small"));
  for (const Answer& answer : client().Assign(asks)) ASSERT_EQ(answer.outcome, Outcome::kNew);

  int claims = 0;
  for (Millis now = kNoon + kHour; claims < 60; now += kWindow) {
    const Claim claim = ClaimAt(now);
    ASSERT_THAT(claim.events, SizeIs(1));
    ++claims;
    AllDone(claim, now);
    if (claim.events[0].slot.event_id == "small") break;
  }
  EXPECT_LT(claims, 40) << "a third of the claims are its own; without: 61";
}

TEST_P(ExecutionFaults, ADeadLetterThatIsRescheduledHasAllItsFailuresAgain) {
  client().Put(Pay(10));
  client().Assign(client().Ask("e", "pay", kNoon));
  Millis now = kNoon + kWindow;
  const auto fail = [&](bool retry) {
    now += kWindow;
    const Claim claim = ClaimAt(now);
    EXPECT_THAT(claim.events, SizeIs(1));
    Finish end{.event_id = "e", .attempt = claim.events.at(0).attempt, .failed = true};
    if (retry) end.retry_at = now;
    end.most_failures = 3;
    end.now = now;
    return client().Finish({end}).at(0);
  };
  EXPECT_EQ(fail(true), Finished::kOk);
  EXPECT_EQ(fail(true), Finished::kOk);
  EXPECT_EQ(fail(false), Finished::kOk);  // failed permanently
  ASSERT_EQ(client().Look("e")->state, State::kFailed);
  ASSERT_EQ(client().Reschedule({.event_id = "e", .requested = kNoon})->outcome, Outcome::kNew);
  EXPECT_EQ(fail(true), Finished::kOk);
  EXPECT_EQ(fail(true), Finished::kOk);
  EXPECT_EQ(fail(true), Finished::kGivenUp);
}

// The answer was lost: the second report is not of a second failure, nor of a claim of others.
TEST_P(ExecutionFaults, ReportingTheLastFailureButOneAgainIsHarmless) {
  client().Put(Pay(5));
  client().Assign(client().Ask("e", "pay", kNoon));
  const Claim claim = ClaimAt(kNoon + kWindow);
  ASSERT_THAT(claim.events, SizeIs(1));
  const std::vector<Finish> ends = {{.event_id = "e",
                                     .attempt = 1,
                                     .failed = true,
                                     .retry_at = kNoon + 2 * kWindow,
                                     .most_failures = 2,
                                     .now = kNoon + kWindow}};
  EXPECT_EQ(client().Finish(ends).at(0), Finished::kOk);
  EXPECT_EQ(client().Finish(ends).at(0), Finished::kAlready);
  EXPECT_EQ(client().Look("e")->state, State::kScheduled);
}

// The clock of these claims is that of last year: their leases have ended, and nobody has claimed
// since who would have noticed.
TEST_P(ExecutionFaults, WhatADispatcherThatIsGoneHadClaimedIsCancelledAfterItsLease) {
  client().Put(Pay(10));
  client().Assign(client().Ask("e", "pay", kNoon));
  const Claim claim = ClaimAt(kNoon + kWindow);
  ASSERT_THAT(claim.events, SizeIs(1));
  EXPECT_EQ(client().Cancel("e")->event_id, "e");
  EXPECT_EQ(client().Look("e")->state, State::kCancelled);
  EXPECT_THAT(Changes("e"), ElementsAre("lease-ended", "cancelled"));
  EXPECT_EQ(Done(claim.events[0], kNoon + 2 * kWindow), Finished::kLost);
  EXPECT_THAT(ClaimAt(kNoon + kHour).events, SizeIs(0));
  EXPECT_EQ(client().Backlogs(kNoon + kHour).at(0).claimed, 0);
  EXPECT_EQ(client().Verify().problems, 0);
}

TEST_P(ExecutionFaults, WhatADispatcherThatIsGoneHadClaimedIsMovedAfterItsLease) {
  client().Put(Pay(10));
  client().Assign(client().Ask("e", "pay", kNoon));
  const Claim claim = ClaimAt(kNoon + kWindow);
  ASSERT_THAT(claim.events, SizeIs(1));
  EXPECT_EQ(client().Reschedule({.event_id = "e", .requested = kNoon + kHour})->outcome,
            Outcome::kNew);
  EXPECT_THAT(Changes("e"), ElementsAre("lease-ended", "rescheduled"));
  EXPECT_EQ(Done(claim.events[0], kNoon + 2 * kWindow), Finished::kLost);
  EXPECT_EQ(client().Backlogs(kNoon).at(0).claimed, 0);
  const Claim again = ClaimAt(kNoon + 2 * kHour);
  ASSERT_THAT(again.events, SizeIs(1));
  EXPECT_EQ(again.events[0].attempt, 2);
  EXPECT_EQ(client().Verify().problems, 0);
}

// Its tenant lost its share while the event was claimed, and then there is no room for its retry.
TEST_P(ExecutionFaults, ARetryWithoutRoomIsClaimedAlsoIfItsTenantsClassIsGone) {
  Config config = Pay(2);
  config.headroom = 0;
  config.fair_windows = 1;
  config.tenants = {{"acme", 1}, {"*", 1}};
  client().Put(config);
  ASSERT_EQ(client().Assign(client().Ask("e", "pay", kNoon, "acme")).outcome, Outcome::kNew);
  const Claim claim = ClaimAt(kNoon + kWindow);
  ASSERT_THAT(claim.events, SizeIs(1));
  config.tenants = {{"other", 1}, {"*", 1}};
  client().Put(config);
  // Its class has one place in each of the two windows that the search may use.
  for (const Millis window : {10, 11}) {
    const std::string name = "in" + std::to_string(window);
    ASSERT_EQ(client().Assign(client().Ask(name, "pay", kNoon + window * kWindow)).outcome,
              Outcome::kNew);
  }
  Finish end{.event_id = "e", .attempt = claim.events[0].attempt, .failed = true};
  end.retry_at = kNoon + 10 * kWindow;
  end.now = kNoon + kWindow;
  ASSERT_EQ(client().Finish({end}).at(0), Finished::kOk);
  const Event kept = *client().Look("e");
  ASSERT_EQ(kept.state, State::kScheduled);
  ASSERT_EQ(kept.slot.window_start, kNoon) << "there is no room";
  EXPECT_THAT(ClaimAt(kNoon + 2 * kWindow).events, SizeIs(1));
}

// Its events are still executed, so one that fails still waits for its next attempt.
TEST_P(ExecutionFaults, ARetryOfAConfigThatIsNotActiveComesAtItsTimeToo) {
  client().Put(Pay(10));
  client().Assign(client().Ask("e", "pay", kNoon));
  const Claim claim = ClaimAt(kNoon + kWindow);
  ASSERT_THAT(claim.events, SizeIs(1));
  ASSERT_TRUE(client().Deactivate("pay"));
  Finish end{.event_id = "e", .attempt = 1, .failed = true};
  end.retry_at = kNoon + 10 * kWindow;
  end.now = kNoon + kWindow;
  ASSERT_EQ(client().Finish({end}).at(0), Finished::kOk);
  EXPECT_EQ(client().Look("e")->slot.window_start, kNoon + 10 * kWindow);
  EXPECT_THAT(ClaimAt(kNoon + 9 * kWindow).events, SizeIs(0));
  EXPECT_THAT(ClaimAt(kNoon + 11 * kWindow).events, SizeIs(1));
  EXPECT_EQ(client().Assign(client().Ask("new", "pay", kNoon)).outcome, Outcome::kUnknownConfig);
}

// A claim half a second ahead gets all of it, even if that spans many windows.
TEST_P(ExecutionFaults, SmallWindowsAreClaimedAsFarAheadAsLargeOnes) {
  constexpr Millis kSmall = 10;
  client().Put({.name = "pay", .window_size = kSmall, .max_per_window = 100});
  std::vector<Ask> asks;
  for (int i = 0; i < 50; ++i) {
    asks.push_back(client().Ask("e" + std::to_string(i), "pay", kNoon + i * kSmall));
  }
  for (const Answer& answer : client().Assign(asks)) ASSERT_EQ(answer.outcome, Outcome::kNew);
  EXPECT_THAT(ClaimAt(kNoon, 1'000, 500).events, SizeIs(50));
}

INSTANTIATE_TEST_SUITE_P(Stores, ExecutionFaults, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
