#include <gmock/gmock.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "execution_fixture.h"
#include "slots/config.h"
#include "slots/execution.h"

// How due events are shared, listed and caught up with, on every store.

namespace weir::slots {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

using Backlogs = Execution;

TEST_P(Backlogs, ABacklogIsSharedFairlyBetweenTenants) {
  Config config = Pay(8);
  config.tenants = {{"a", 1}, {"b", 1}, {"*", 2}};
  client().Put(*CheckConfig(config));
  client().Assign(Asks(100, kNoon, "a", "a"));
  client().Assign(Asks(20, kNoon + 400'000, "b", "b"));
  client().Assign(Asks(20, kNoon + 400'000, "c", "c"));
  std::map<std::string, int> seen;
  const Claim claim = ClaimAt(kNoon + 1'000'000);
  ASSERT_THAT(claim.events, SizeIs(8));
  for (const Claimed& event : claim.events) ++seen[event.slot.tenant];
  EXPECT_EQ(seen["a"], 2) << "although all of a's are older";
  EXPECT_EQ(seen["b"], 2);
  EXPECT_EQ(seen["c"], 4);
  AllDone(claim, claim.now);
  // Without weights the oldest come first.
  client().Put(Pay(8));
  for (const Claimed& event : ClaimAt(kNoon + 1'004'000).events) EXPECT_EQ(event.slot.tenant, "a");
}

TEST_P(Backlogs, ManyClaimersShareTheWorkAndNobodyGetsAnothersEvent) {
  client().Put(Pay(100'000));
  client().Assign(Asks(2'000, kNoon));
  std::mutex mutex;
  std::map<std::string, int> seen;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        test::SlotStoreClient mine(store(), static_cast<std::uint64_t>(t));
        for (;;) {
          const Claim claim = mine.Claim({.config = "pay",
                                          .max = 37,
                                          .lease = kLease,
                                          .by = "t" + std::to_string(t),
                                          .now = kNoon + kWindow});
          if (claim.events.empty()) return;
          std::vector<Finish> ends;
          for (const Claimed& event : claim.events) {
            ends.push_back({.event_id = event.slot.event_id, .attempt = 1, .now = claim.now});
          }
          for (const Finished end : mine.Finish(ends)) EXPECT_EQ(end, Finished::kOk);
          const std::lock_guard lock(mutex);
          for (const Claimed& event : claim.events) ++seen[event.slot.event_id];
        }
      });
    }
  }
  EXPECT_EQ(seen.size(), 2'000U);
  for (const auto& [event, times] : seen) EXPECT_EQ(times, 1) << event;
}

TEST_P(Backlogs, DueEventsAreListedPageByPage) {
  client().Put(Pay(10));
  client().Assign(Asks(25, kNoon));
  DueQuery query{.config = "pay", .before = kMaxInstant, .limit = 10};
  std::set<std::string> seen;
  Millis last = 0;
  for (;;) {
    const std::vector<Event> page = client().Due(query);
    for (const Event& event : page) {
      EXPECT_GE(event.slot.scheduled, last);
      last = event.slot.scheduled;
      seen.insert(event.slot.event_id);
    }
    if (page.size() < 10) break;
    query.after_time = last;
    query.after_event = page.back().slot.event_id;
  }
  EXPECT_EQ(seen.size(), 25U);
  EXPECT_THAT(client().Due({.config = "pay", .before = kNoon - 1}), SizeIs(0));
}

TEST_P(Backlogs, ADeadLetterIsGivenUpByCancellingIt) {
  client().Put(Pay(10));
  client().Assign(client().Ask("e", "pay", kNoon));
  ASSERT_THAT(ClaimAt(kNoon + kWindow).events, SizeIs(1));
  Finish end{.event_id = "e", .attempt = 1};
  end.failed = true;
  end.error = "account closed";
  ASSERT_THAT(client().Finish({end}), ElementsAre(Finished::kOk));
  ASSERT_TRUE(client().Cancel("e").has_value());
  const Event seen = *client().Look("e");
  EXPECT_EQ(seen.state, State::kCancelled);
  EXPECT_EQ(seen.error, "account closed");
  EXPECT_THAT(client().Due({.config = "pay", .before = kMaxInstant, .state = State::kFailed}),
              SizeIs(0));
  EXPECT_EQ(client().Assign(client().Ask("e", "pay", kNoon)).outcome, Outcome::kCancelled);
  EXPECT_THAT(ClaimAt(kNoon + 1'000'000).events, SizeIs(0));
  EXPECT_EQ(client().Verify().problems, 0) << "it holds no place any more";
}

// Attempts that reveal nothing about the event do not count against it.
TEST_P(Backlogs, OnlyFailuresThatCountMakeADeadLetter) {
  client().Put(Pay(10));
  client().Assign(client().Ask("e", "pay", kNoon));
  Millis now = kNoon + kWindow;
  const auto fail = [&](bool counts) {
    const Claim claim = ClaimAt(now);
    EXPECT_THAT(claim.events, SizeIs(1));
    now += 2 * kWindow;
    Finish end{.event_id = "e", .attempt = claim.events.at(0).attempt};
    end.failed = true;
    end.error = "no answer";
    end.retry_at = now - kWindow;
    end.counts = counts;
    end.most_failures = 2;
    end.now = now - kWindow;
    const Finished told = client().Finish({end}).at(0);
    if (told == Finished::kGivenUp) {
      EXPECT_EQ(client().Finish({end}).at(0), Finished::kAlready);
    }
    return told;
  };
  for (const int round : {1, 2}) {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(fail(false), Finished::kOk);
    EXPECT_EQ(fail(true), Finished::kOk);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(fail(false), Finished::kOk);
    EXPECT_EQ(client().Look("e")->state, State::kScheduled);
    EXPECT_EQ(fail(true), Finished::kGivenUp);
    const Event dead = *client().Look("e");
    EXPECT_EQ(dead.state, State::kFailed);
    EXPECT_EQ(dead.attempts, 12 * round);
    EXPECT_EQ(dead.error, "no answer");
    EXPECT_EQ(client().Backlogs(now).at(0).claimed, 0);
    // A rescheduled event keeps its number of failures.
    client().Reschedule({.event_id = "e", .requested = now});
    now += kWindow;
  }
  EXPECT_EQ(client().Verify().problems, 0);
}

TEST_P(Backlogs, TheBacklogSaysHowLongCatchingUpTakes) {
  client().Put(Pay(10));
  client().Assign(Asks(45, kNoon));
  Backlog backlog = client().Backlogs(kNoon - 1).at(0);
  EXPECT_EQ(backlog.due, 0);
  EXPECT_FALSE(backlog.executed);
  EXPECT_EQ(CaughtUpBy(backlog, {}), kNoon - 1);
  // Each is due or will be later, also within a window.
  for (const Millis at : {kNoon - 1, kNoon, kNoon + kWindow / 2, kNoon + 3 * kWindow + 1}) {
    const Backlog then = client().Backlogs(at).at(0);
    EXPECT_EQ(then.due + then.later, 45) << at - kNoon;
  }
  const Millis now = kNoon + 600'000;
  const Claim claim = ClaimAt(now, 3);
  EXPECT_THAT(claim.events, SizeIs(3));
  client().Assign(Asks(8, now + kWindow, "next"));  // the next window has room for two more
  backlog = client().Backlogs(now).at(0);
  EXPECT_EQ(backlog.config, "pay");
  EXPECT_EQ(backlog.due, 42);
  EXPECT_EQ(backlog.later, 8);
  EXPECT_EQ(backlog.claimed, 3);
  EXPECT_EQ(backlog.granted, 3);
  EXPECT_EQ(backlog.window_start, now);
  EXPECT_TRUE(backlog.executed);
  EXPECT_GE(backlog.oldest_due, kNoon);
  // 7 now, 2 in the next window, then 10 a window: 33 more take four.
  const std::vector<WindowLoad> windows = client().Windows("pay", now);
  EXPECT_EQ(CaughtUpBy(backlog, windows), now + 6 * kWindow);
  EXPECT_EQ(CaughtUpBy(backlog, windows, false), std::nullopt) << "later windows may be full";
  backlog.calendar = *ParseCalendar("UTC MON-SUN 00:00-24:00");
  EXPECT_EQ(CaughtUpBy(backlog, windows), now + 6 * kWindow);
  EXPECT_EQ(CaughtUpBy(backlog, windows, false), std::nullopt);
  backlog.due = kMaxCounted;
  EXPECT_EQ(CaughtUpBy(backlog, windows), std::nullopt) << "there may be more";
}

INSTANTIATE_TEST_SUITE_P(Stores, Backlogs, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
