#include "slots/execution.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "execution_fixture.h"
#include "slots/config.h"

// The life of an event after it has a slot, on every store.

namespace weir::slots {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_P(Execution, AnEventGoesFromScheduledToDone) {
  client().Put(Pay(10));
  Ask ask = client().Ask("e", "pay", kNoon, "acme");
  ask.payload = "{\"amount\":\"12.50\"}";
  const Slot slot = client().Assign(ask).slot;
  EXPECT_EQ(client().Look("e")->state, State::kScheduled);
  EXPECT_THAT(ClaimAt(slot.scheduled - 1).events, SizeIs(0)) << "not due yet";

  const Claim claim = ClaimAt(slot.scheduled);
  ASSERT_THAT(claim.events, SizeIs(1));
  EXPECT_EQ(claim.now, slot.scheduled);
  const Claimed& event = claim.events[0];
  EXPECT_EQ(event.slot, slot);
  EXPECT_EQ(event.attempt, 1);
  EXPECT_EQ(event.payload, ask.payload);
  EXPECT_EQ(event.execute_at, slot.scheduled);
  EXPECT_EQ(event.lease_until, slot.scheduled + kLease);
  Event seen = *client().Look("e");
  EXPECT_EQ(seen.state, State::kClaimed);
  EXPECT_EQ(seen.attempts, 1);
  EXPECT_EQ(seen.claimed_by, "test");
  EXPECT_EQ(seen.payload, ask.payload);

  EXPECT_EQ(Done(event, slot.scheduled + 5), Finished::kOk);
  EXPECT_EQ(Done(event, slot.scheduled + 5), Finished::kAlready);
  seen = *client().Look("e");
  EXPECT_EQ(seen.state, State::kDone);
  EXPECT_EQ(seen.finished_at, slot.scheduled + 5);
  EXPECT_THAT(ClaimAt(kNoon + 1'000'000).events, SizeIs(0));
  EXPECT_EQ(client().Finish({{.event_id = "nobody", .attempt = 1}}).at(0), Finished::kUnknown);
}

TEST_P(Execution, AClaimedOrDoneEventIsNeitherCancelledNorMoved) {
  client().Put(Pay(10));
  client().Assign(client().Ask("e", "pay", kNoon));
  const Claim claim = ClaimAt(0);  // by the clock of the store
  ASSERT_THAT(claim.events, SizeIs(1));
  EXPECT_THROW(client().Cancel("e"), std::runtime_error);
  EXPECT_THROW(client().Reschedule({.event_id = "e", .requested = kNoon}), std::runtime_error);
  AllDone(claim, claim.now);
  EXPECT_THROW(client().Cancel("e"), std::runtime_error);
  EXPECT_THROW(client().Reschedule({.event_id = "e", .requested = kNoon}), std::runtime_error);
  EXPECT_EQ(client().Assign(client().Ask("e", "pay", kNoon)).outcome, Outcome::kExisting);
}

TEST_P(Execution, ACancelledEventIsNeverClaimed) {
  client().Put(Pay(10));
  client().Assign(Asks(3, kNoon));
  client().Cancel("e1");
  EXPECT_THAT(ClaimAt(kNoon + kWindow).events, SizeIs(2));
}

TEST_P(Execution, WhenTheLeaseEndsAnotherMayClaimAndTheFirstHasLostIt) {
  client().Put(Pay(10));
  client().Assign(client().Ask("e", "pay", kNoon));
  const Claim first = ClaimAt(kNoon + kWindow - 1);
  ASSERT_THAT(first.events, SizeIs(1));
  const Millis until = first.events[0].lease_until;
  EXPECT_THAT(ClaimAt(until - 1).events, SizeIs(0));
  const Claim second = ClaimAt(until);
  ASSERT_THAT(second.events, SizeIs(1));
  EXPECT_EQ(second.events[0].attempt, 2) << "marked as delivered again";
  EXPECT_EQ(Done(first.events[0], until), Finished::kLost);
  EXPECT_EQ(Done(second.events[0], until), Finished::kOk);
  const Event seen = *client().Look("e");
  ASSERT_THAT(seen.history, SizeIs(1));
  EXPECT_EQ(seen.history[0].what, "lease-ended");
  EXPECT_EQ(seen.history[0].detail, "test");
}

TEST_P(Execution, WhoIsLateButStillAloneHasDoneIt) {
  client().Put(Pay(10));
  client().Assign(Asks(2, kNoon));
  const Claim claim = ClaimAt(kNoon + kWindow - 1);
  ASSERT_THAT(claim.events, SizeIs(2));
  EXPECT_EQ(Done(claim.events[0], kNoon + 60'000), Finished::kOk);
  // Another claim detects the end of the lease, but takes nothing, since it is for another time.
  client().Put({.name = "pay", .window_size = kWindow, .max_per_window = 1});
  ClaimAt(kNoon + 60'000, 1, 0);
  EXPECT_EQ(client().Look(claim.events[1].slot.event_id)->state, State::kScheduled);
  EXPECT_EQ(Done(claim.events[1], kNoon + 60'000), Finished::kOk);
  EXPECT_EQ(client().Look(claim.events[1].slot.event_id)->state, State::kDone);
}

TEST_P(Execution, AnEndIsCountedInTheWindowInWhichItWas) {
  client().Put(Pay(10));
  client().Assign(Asks(10, kNoon));
  client().Assign(Asks(10, kNoon + kWindow, "next"));
  const Claim claim = ClaimAt(kNoon + kWindow - 1);
  ASSERT_THAT(claim.events, SizeIs(10));
  const Millis told = kNoon + kWindow + 500;
  std::vector<Finish> ends;
  for (std::size_t i = 0; i < 10; ++i) {
    // Four in the first window, three in the next, three "before their claim".
    const Millis ago = i < 4 ? 501 : i < 7 ? 500 : 3'600'000;
    ends.push_back(
        {.event_id = claim.events[i].slot.event_id, .attempt = 1, .ago = ago, .now = told});
  }
  EXPECT_THAT(client().Finish(std::move(ends)), Each(Finished::kOk));
  EXPECT_EQ(client().Look(claim.events[0].slot.event_id)->finished_at, kNoon + kWindow - 1);
  EXPECT_EQ(client().Look(claim.events[9].slot.event_id)->finished_at, kNoon + kWindow - 1);
  EXPECT_THAT(ClaimAt(kNoon + 2 * kWindow - 1).events, SizeIs(7)) << "three are in that window";
}

TEST_P(Execution, WhatDidNotFitIsClaimedAheadForTheNextWindowAndComesFirstInIt) {
  client().Put(Pay(10));
  client().Assign(Asks(10, kNoon));
  client().Assign(Asks(10, kNoon + kWindow, "next"));
  const Claim first = ClaimAt(kNoon + kWindow - 1);
  ASSERT_THAT(first.events, SizeIs(10));
  AllDone(first, kNoon + kWindow);  // all in the next window, which is full with that
  EXPECT_THAT(ClaimAt(kNoon + 2 * kWindow - 2).events, IsEmpty());
  const Claim ahead = ClaimAt(kNoon + 2 * kWindow - 1, 1'000, 1);
  ASSERT_THAT(ahead.events, SizeIs(10));
  EXPECT_FALSE(ahead.capped);
  for (const Claimed& event : ahead.events) {
    EXPECT_EQ(event.slot.window_start, kNoon + kWindow);
    EXPECT_GE(event.execute_at, kNoon + 2 * kWindow);
    EXPECT_LT(event.execute_at, kNoon + 3 * kWindow);
  }
}

TEST_P(Execution, AFewThatAreLateAreNotSpreadOverTheWholeWindow) {
  client().Put(Pay(100));
  client().Assign(Asks(2, kNoon));
  const Claim claim = ClaimAt(kNoon + kWindow);
  ASSERT_THAT(claim.events, SizeIs(2));
  // Two of a hundred at four times the cap's pace: 4,000 ms × 4 × 2 / 100.
  for (const Claimed& event : claim.events) {
    EXPECT_LT(event.execute_at, kNoon + kWindow + 320);
  }
}

TEST_P(Execution, AFailedEventIsADeadLetterUntilItIsRescheduled) {
  client().Put(Pay(10));
  client().Assign(client().Ask("e", "pay", kNoon));
  const Claim claim = ClaimAt(kNoon + kWindow);
  const Finish end{.event_id = "e",
                   .attempt = 1,
                   .failed = true,
                   .error = "account closed",
                   .now = kNoon + kWindow + 1};
  EXPECT_THAT(client().Finish({end}), ElementsAre(Finished::kOk));
  EXPECT_THAT(client().Finish({end}), ElementsAre(Finished::kAlready));
  const Event seen = *client().Look("e");
  EXPECT_EQ(seen.state, State::kFailed);
  EXPECT_EQ(seen.error, "account closed");
  const auto dead = client().Due({.config = "pay", .before = kMaxInstant, .state = State::kFailed});
  ASSERT_THAT(dead, SizeIs(1));
  EXPECT_EQ(dead[0].slot.event_id, "e");
  const auto moved = client().Reschedule({.event_id = "e", .requested = kNoon + 60'000});
  EXPECT_EQ(moved->slot.window_start, kNoon + 60'000);
  const Claim again = ClaimAt(kNoon + 64'000);
  ASSERT_THAT(again.events, SizeIs(1));
  EXPECT_EQ(again.events[0].attempt, 2);
}

TEST_P(Execution, ARetryTakesASlotAgain) {
  client().Put(Pay(1));
  client().Assign(client().Ask("e", "pay", kNoon));
  client().Assign(client().Ask("busy", "pay", kNoon + 20'000));
  const Claim claim = ClaimAt(kNoon + kWindow);
  ASSERT_THAT(claim.events, SizeIs(1));
  const Finish end{.event_id = "e",
                   .attempt = 1,
                   .failed = true,
                   .error = "503",
                   .retry_at = kNoon + 20'000,
                   .now = kNoon + kWindow + 9};
  EXPECT_THAT(client().Finish({end}), ElementsAre(Finished::kOk));
  EXPECT_THAT(client().Finish({end}), ElementsAre(Finished::kAlready));
  const Event seen = *client().Look("e");
  EXPECT_EQ(seen.state, State::kScheduled);
  EXPECT_EQ(seen.slot.window_start, kNoon + 24'000) << "its window was full";
  EXPECT_EQ(seen.slot.requested, kNoon) << "the feed still finds it";
  EXPECT_EQ(seen.error, "503");
  ASSERT_THAT(seen.history, SizeIs(1));
  EXPECT_EQ(seen.history[0].what, "failed");
  const Claim busy = ClaimAt(kNoon + 24'000 - 1);
  ASSERT_THAT(busy.events, SizeIs(1));
  EXPECT_EQ(busy.events[0].slot.event_id, "busy");
  EXPECT_EQ(client().Assign(client().Ask("e", "pay", kNoon)).outcome, Outcome::kExisting);
}

TEST_P(Execution, ARetryWithoutRoomKeepsTheSlotItHad) {
  Config config = Pay(2);
  config.headroom = 0;
  config.fair_windows = 1;
  config.tenants = {{"acme", 1}, {"*", 1}};
  client().Put(config);
  client().Assign(client().Ask("e", "pay", kNoon, "acme"));
  const Slot before = *client().Find("e");
  ClaimAt(kNoon + kWindow);
  // Its tenant has one place in each of the two windows that the search may use.
  for (const Millis window : {kNoon + 20'000, kNoon + 20'000 + kWindow}) {
    const auto ask = client().Ask("busy" + std::to_string(window), "pay", window, "acme");
    ASSERT_EQ(client().Assign(ask).outcome, Outcome::kNew);
  }
  EXPECT_THAT(client().Finish({{.event_id = "e",
                                .attempt = 1,
                                .failed = true,
                                .error = "503",
                                .retry_at = kNoon + 20'000,
                                .now = kNoon + kWindow}}),
              ElementsAre(Finished::kOk));
  EXPECT_EQ(client().Look("e")->state, State::kScheduled);
  EXPECT_EQ(client().Find("e"), before);
}

TEST_P(Execution, AnOverdueBacklogIsReleasedUnderTheCapInOrderOfTime) {
  client().Put(Pay(10));
  client().Assign(Asks(55, kNoon));  // six windows in the schedule
  const Millis back = kNoon + 600'000;
  client().Assign(Asks(10, back, "now"));
  std::vector<Millis> times;
  Millis now = back;
  std::size_t total = 0;
  for (int window = 0; window < 7; ++window, now += kWindow) {
    // However often one claims: ten a window.
    Claim all;
    for (int i = 0; i < 5; ++i) {
      const Claim part = ClaimAt(now + i * 700, 3 + static_cast<std::size_t>(i));
      all.events.insert(all.events.end(), part.events.begin(), part.events.end());
      AllDone(part, now + i * 700 + 1);
      all.capped = part.capped;
    }
    EXPECT_LE(all.events.size(), 10U);
    if (window < 6) {
      EXPECT_EQ(all.events.size(), 10U) << "catching up at full speed";
      EXPECT_TRUE(all.capped);
    }
    for (const Claimed& event : all.events) {
      times.push_back(event.slot.scheduled);
      EXPECT_GE(event.execute_at, now);
      EXPECT_LT(event.execute_at, now + kWindow) << "executed in the window it was granted for";
    }
    total += all.events.size();
  }
  EXPECT_EQ(total, 65U);
  // The oldest first (each batch's own order is free).
  const auto half = times.begin() + 30;
  EXPECT_LE(*std::max_element(times.begin(), half), *std::min_element(half, times.end()));
}

TEST_P(Execution, WhatIsLateIsExecutedInTheOrderOfItsTimesAllOverTheWindow) {
  client().Put(Pay(50));
  client().Assign(Asks(50, kNoon));
  const Millis later = kNoon + 10 * kWindow;
  Claim claim = client().Claim(
      {.config = "pay", .max = 50, .lease = kLease, .now = later, .random = 987'654'321});
  ASSERT_THAT(claim.events, SizeIs(50));
  std::sort(claim.events.begin(), claim.events.end(),
            [](const Claimed& a, const Claimed& b) { return a.slot.scheduled < b.slot.scheduled; });
  for (std::size_t i = 1; i < claim.events.size(); ++i) {
    const Claimed& before = claim.events[i - 1];
    if (before.slot.scheduled == claim.events[i].slot.scheduled) continue;  // no order among equals
    EXPECT_LE(before.execute_at, claim.events[i].execute_at);
  }
  for (Millis tenth = later; tenth < later + kWindow; tenth += kWindow / 10) {
    EXPECT_EQ(std::count_if(claim.events.begin(), claim.events.end(),
                            [tenth](const Claimed& event) {
                              return event.execute_at >= tenth &&
                                     event.execute_at < tenth + kWindow / 10;
                            }),
              5)
        << "never a burst";
  }
}

TEST_P(Execution, WhatIsNotFinishedWhenAWindowBeginsCountsInIt) {
  client().Put(Pay(10));
  client().Assign(Asks(40, kNoon));
  const Millis later = kNoon + 600'000;
  const Claim first = ClaimAt(later + 3'999);
  ASSERT_THAT(first.events, SizeIs(10));
  // None of the ten is done: each may still be executed in the next window, so it grants nothing.
  EXPECT_THAT(ClaimAt(later + kWindow).events, SizeIs(0));
  // Four were done before it began, three in it.
  for (std::size_t i = 0; i < 7; ++i) {
    Done(first.events[i], i < 4 ? later + 3'999 : later + kWindow + 5);
  }
  EXPECT_THAT(ClaimAt(later + kWindow + 10).events, SizeIs(4));
  for (std::size_t i = 7; i < 10; ++i) Done(first.events[i], later + kWindow + 20);
  EXPECT_THAT(ClaimAt(later + kWindow + 30).events, SizeIs(0)) << "six more ended in this window";
}

TEST_P(Execution, ClaimingAheadGrantsForTheWindowOfTheEvent) {
  client().Put(Pay(10));
  client().Assign(Asks(20, kNoon));  // two full windows
  const Claim early = ClaimAt(kNoon - 100, 1'000, 5'000);
  // All ten of the first window and none of the second: the first ten may not be finished by then.
  EXPECT_THAT(early.events, SizeIs(10));
  for (const Claimed& event : early.events) EXPECT_EQ(event.execute_at, event.slot.scheduled);
  AllDone(early, kNoon - 50);
  const Claim next = ClaimAt(kNoon + 3'000, 1'000, 5'000);
  EXPECT_THAT(next.events, SizeIs(10));
  for (const Claimed& event : next.events) {
    EXPECT_GE(event.execute_at, kNoon + kWindow);
    EXPECT_EQ(event.execute_at, event.slot.scheduled);
  }
}

TEST_P(Execution, WhatComesLateIsNotGrantedIntoAWindowThatWasClaimedAhead) {
  client().Put(Pay(10));
  client().Assign(Asks(10, kNoon + kWindow));
  const Claim ahead = ClaimAt(kNoon + 3'000, 1'000, 5'000);
  ASSERT_THAT(ahead.events, SizeIs(10)) << "the next window has granted all it may";
  client().Assign(client().Ask("late", "pay", kNoon + 3'000));
  // Executed a moment after the window's end it would be the eleventh of the next one.
  const Claim refused = ClaimAt(kNoon + 3'999);
  EXPECT_THAT(refused.events, SizeIs(0));
  EXPECT_TRUE(refused.capped);
  for (std::size_t i = 0; i < 10; ++i) Done(ahead.events[i], kNoon + kWindow + 100);
  EXPECT_THAT(ClaimAt(kNoon + kWindow + 200).events, SizeIs(0));
  const Claim later = ClaimAt(kNoon + 2 * kWindow);
  ASSERT_THAT(later.events, SizeIs(1));
  EXPECT_EQ(later.events[0].slot.event_id, "late");
}

TEST_P(Execution, ALaterWindowsGrantsLeaveRoomForWhatComesLate) {
  client().Put(Pay(10));
  client().Assign(Asks(6, kNoon + kWindow));
  ASSERT_THAT(ClaimAt(kNoon + 3'000, 1'000, 5'000).events, SizeIs(6));
  client().Assign(Asks(10, kNoon - kWindow, "late"));
  const Claim late = ClaimAt(kNoon + 3'500);
  EXPECT_THAT(late.events, SizeIs(4)) << "ten in the next window if all of them are slow";
  AllDone(late, kNoon + 3'600);
  EXPECT_THAT(ClaimAt(kNoon + 3'700).events, SizeIs(4)) << "these are over before it begins";
}

TEST_P(Execution, TheCapHoldsWhenTheWindowSizeChangesAfterClaimingAhead) {
  client().Put(Pay(10));
  client().Assign(Asks(10, kNoon + kWindow));
  ASSERT_THAT(ClaimAt(kNoon + 3'000, 1'000, 5'000).events, SizeIs(10));
  client().Put({.name = "pay", .window_size = 1'000, .max_per_window = 12});
  client().Assign(Asks(20, kNoon, "late"));
  // Those ten count in every new window that theirs covers, so two more may still be open then.
  EXPECT_THAT(ClaimAt(kNoon + 3'500).events, SizeIs(2));
}

INSTANTIATE_TEST_SUITE_P(Stores, Execution, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
