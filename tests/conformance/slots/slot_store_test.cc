#include <gmock/gmock.h>

#include <array>
#include <set>
#include <thread>

#include "slots/config.h"
#include "slots/window.h"
#include "store_fixture.h"

// The rules of slots, on every store. Times are written as kNoon + n windows of four seconds.

namespace weir::slots {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr Millis kNoon = 1'748'779'200'000;  // 2025-06-01T12:00:00Z, a multiple of 4,000
constexpr Millis kWindow = 4'000;

Config Pay(std::int64_t max, Millis size = kWindow) {
  return {.name = "pay", .window_size = size, .max_per_window = max};
}

using SlotRules = StoreTest;

TEST_P(SlotRules, WindowsFillOneAfterAnother) {
  client().Put(Pay(10));
  const auto answers = client().Assign(Asks(25, kNoon));
  for (const Answer& answer : answers) {
    EXPECT_EQ(answer.outcome, Outcome::kNew);
    EXPECT_GE(answer.slot.scheduled, answer.slot.window_start);
    EXPECT_LT(answer.slot.scheduled, answer.slot.window_start + kWindow);
  }
  EXPECT_THAT(Counts(), ElementsAre(Pair(kNoon, 10), Pair(kNoon + kWindow, 10),
                                    Pair(kNoon + 2 * kWindow, 5)));
}

TEST_P(SlotRules, OneByOneFillsTheSameWindowsAsABatch) {
  client().Put(Pay(3));
  for (const Ask& ask : Asks(7, kNoon)) client().Assign(ask);
  EXPECT_THAT(Counts(),
              ElementsAre(Pair(kNoon, 3), Pair(kNoon + kWindow, 3), Pair(kNoon + 2 * kWindow, 1)));
}

TEST_P(SlotRules, TheFirstWindowCountsInProportionToWhatIsLeftOfIt) {
  client().Put(Pay(10));
  // 1 s of 4 s is left: floor(10 × 1000 / 4000) = 2.
  const auto answers = client().Assign(Asks(5, kNoon + 3'000));
  for (const Answer& answer : answers) {
    EXPECT_GE(answer.slot.scheduled, kNoon + 3'000);
  }
  EXPECT_THAT(Counts(), ElementsAre(Pair(kNoon, 2), Pair(kNoon + kWindow, 3)));
  // Who asks for the window's beginning may still have the other 8.
  client().Assign(Asks(9, kNoon, "early"));
  EXPECT_THAT(Counts(), ElementsAre(Pair(kNoon, 10), Pair(kNoon + kWindow, 4)));
}

TEST_P(SlotRules, TheLastMillisecondOfAWindowMayHoldNobody) {
  client().Put(Pay(10));
  // floor(10 × 1 / 4000) = 0.
  const Answer answer = client().Assign(client().Ask("late", "pay", kNoon + 3'999));
  EXPECT_EQ(answer.slot.window_start, kNoon + kWindow);
}

TEST_P(SlotRules, TheFirstWindowsJitterStaysInWhatIsLeft) {
  client().Put(Pay(1'000));
  // floor(1000 × 10 / 4000) = 2 places in the last 10 ms.
  const auto answers = client().Assign(Asks(2, kNoon + 3'990));
  for (const Answer& answer : answers) {
    EXPECT_GE(answer.slot.scheduled, kNoon + 3'990);
    EXPECT_LT(answer.slot.scheduled, kNoon + kWindow);
  }
}

TEST_P(SlotRules, NobodyIsScheduledBeforeTheTimeHeAskedFor) {
  client().Put(Pay(7, 1'700));  // a size that divides nothing
  std::mt19937_64 random(5);
  std::vector<Ask> asks;
  for (int i = 0; i < 2'000; ++i) {
    asks.push_back(client().Ask("r" + std::to_string(i), "pay",
                                kNoon + static_cast<Millis>(random() % 600'000)));
  }
  const auto answers = client().Assign(asks);
  for (std::size_t i = 0; i < asks.size(); ++i) {
    ASSERT_EQ(answers[i].slot.event_id, asks[i].event_id) << "answers are in input order";
    ASSERT_GE(answers[i].slot.scheduled, asks[i].requested);
    ASSERT_EQ(answers[i].slot.window_start % 1'700, 0);
    ASSERT_EQ(WindowOf(answers[i].slot.scheduled, 1'700), answers[i].slot.window_start);
  }
  for (const WindowLoad& window : client().Windows("pay")) ASSERT_LE(window.count, 7);
}

TEST_P(SlotRules, TheSameEventGetsTheSameAnswerForEver) {
  client().Put(Pay(1));
  const Answer first = client().Assign(client().Ask("e", "pay", kNoon, "acme"));
  EXPECT_EQ(first.outcome, Outcome::kNew);
  const Answer again = client().Assign(client().Ask("e", "pay", kNoon, "other"));
  EXPECT_EQ(again.outcome, Outcome::kExisting);
  EXPECT_EQ(again.slot, first.slot);
  EXPECT_EQ(client().Find("e"), first.slot);
  client().Put(Pay(5));
  EXPECT_EQ(client().Assign(client().Ask("e", "pay", kNoon)).slot, first.slot);
  EXPECT_THAT(Counts(), ElementsAre(Pair(kNoon, 1)));
}

TEST_P(SlotRules, ACancelledEventStaysCancelledWhenItsFeedComesAgain) {
  client().Put(Pay(2));
  client().Assign(Asks(2, kNoon));
  client().Cancel("e1");
  const Answer again = client().Assign(client().Ask("e1", "pay", kNoon));
  EXPECT_EQ(again.outcome, Outcome::kCancelled);
  EXPECT_EQ(again.slot.config, "pay");
  EXPECT_THAT(Counts(), ElementsAre(Pair(kNoon, 1)));
  EXPECT_EQ(client().Look("e1")->state, State::kCancelled);
}

TEST_P(SlotRules, TakingACancellationBackIsACallOfItsOwn) {
  client().Put(Pay(1));
  client().Assign(Asks(2, kNoon));
  client().Cancel("e0");
  client().Assign(client().Ask("n", "pay", kNoon));  // has e0's place now
  const auto back = client().Restore({.event_id = "e0"});
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->outcome, Outcome::kNew);
  EXPECT_EQ(back->slot.requested, kNoon);
  EXPECT_EQ(back->slot.window_start, kNoon + 2 * kWindow);
  EXPECT_EQ(client().Find("e0"), back->slot);
  EXPECT_EQ(client().Assign(client().Ask("e0", "pay", kNoon)).outcome, Outcome::kExisting);
  EXPECT_THROW(client().Restore({.event_id = "e0"}), std::runtime_error) << "it is not cancelled";
  EXPECT_FALSE(client().Restore({.event_id = "nobody"}).has_value());
  EXPECT_THROW(
      {
        client().Cancel("n");
        client().Reschedule({.event_id = "n", .requested = kNoon});
      },
      std::runtime_error)
      << "rescheduling does not take a cancellation back";
  const std::vector<Change> history = client().Look("e0")->history;
  ASSERT_EQ(history.size(), 2U);
  EXPECT_EQ(history[0].what, "cancelled");
  EXPECT_EQ(history[1].what, "restored");
}

TEST_P(SlotRules, AnIdOfAnotherConfigOrTimeIsAConflict) {
  client().Put(Pay(5));
  client().Put({.name = "other", .window_size = kWindow, .max_per_window = 2});
  const Slot there = client().Assign(client().Ask("e", "pay", kNoon)).slot;
  for (const Ask& ask : {client().Ask("e", "other", kNoon), client().Ask("e", "nothing", kNoon),
                         client().Ask("e", "pay", kNoon + 1)}) {
    const Answer answer = client().Assign(ask);
    EXPECT_EQ(answer.outcome, Outcome::kConflict);
    EXPECT_EQ(answer.slot, there) << "answered as what it is, with its config";
  }
  EXPECT_EQ(client().Assign(client().Ask("e", "pay", kNoon, "acme")).outcome, Outcome::kExisting);
}

TEST_P(SlotRules, AnEventTwiceInABatchHasOneSlot) {
  client().Put(Pay(10));
  const auto answers = client().Assign(
      std::vector<Ask>{client().Ask("a", "pay", kNoon), client().Ask("b", "pay", kNoon),
                       client().Ask("a", "pay", kNoon + 50'000), client().Ask("b", "pay", kNoon)});
  EXPECT_EQ(answers[0].outcome, Outcome::kNew);
  EXPECT_EQ(answers[2].outcome, Outcome::kConflict);
  EXPECT_EQ(answers[2].slot, answers[0].slot);
  EXPECT_EQ(answers[3].outcome, Outcome::kExisting);
  EXPECT_THAT(Counts(), ElementsAre(Pair(kNoon, 2)));
}

TEST_P(SlotRules, FiftyCallersWithOneIdAtOnceGetOneSlot) {
  client().Put(Pay(10));
  std::vector<Answer> answers(50);
  std::vector<Ask> asks;
  for (int i = 0; i < 50; ++i) asks.push_back(client().Ask("same", "pay", kNoon));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 50; ++i) {
      threads.emplace_back([&, i] { answers[i] = client().Assign(asks[i]); });
    }
  }
  int fresh = 0;
  for (const Answer& answer : answers) {
    fresh += answer.outcome == Outcome::kNew ? 1 : 0;
    EXPECT_EQ(answer.slot, answers[0].slot);
  }
  EXPECT_EQ(fresh, 1);
  EXPECT_THAT(Counts(), ElementsAre(Pair(kNoon, 1)));
}

TEST_P(SlotRules, AWindowClosesWhenFullAndOpensAgain) {
  client().Put(Pay(2));
  client().Assign(Asks(2, kNoon));
  EXPECT_FALSE(client().Windows("pay").at(0).open);
  const std::optional<Slot> gone = client().Cancel("e1");
  ASSERT_TRUE(gone.has_value());
  EXPECT_EQ(gone->window_start, kNoon);
  EXPECT_TRUE(client().Windows("pay").at(0).open);
  EXPECT_EQ(client().Find("e1"), std::nullopt);
  EXPECT_EQ(client().Cancel("e1"), gone) << "cancelling twice is cancelling once";
  EXPECT_EQ(client().Cancel("nobody"), std::nullopt);
  // The freed place is the earliest one again.
  const Answer again = client().Assign(client().Ask("e2", "pay", kNoon));
  EXPECT_EQ(again.outcome, Outcome::kNew);
  EXPECT_EQ(again.slot.window_start, kNoon);
}

TEST_P(SlotRules, APlaceFreedInTheMiddleOfAFullStretchIsFoundFirst) {
  client().Put(Pay(2));
  client().Assign(Asks(20, kNoon));  // ten full windows
  std::set<Millis> windows;
  std::string victim;
  for (int i = 0; i < 20; ++i) {
    const std::string event = "e" + std::to_string(i);
    if (client().Find(event)->window_start == kNoon + 4 * kWindow) victim = event;
  }
  ASSERT_TRUE(client().Cancel(victim).has_value());
  const auto answers = client().Assign(Asks(2, kNoon, "next"));
  for (const Answer& answer : answers) windows.insert(answer.slot.window_start);
  EXPECT_THAT(windows, ElementsAre(kNoon + 4 * kWindow, kNoon + 10 * kWindow));
}

TEST_P(SlotRules, AFarFutureOpenWindowIsNotChosenWhileANearerHasRoom) {
  client().Put(Pay(5));
  const Millis far = kNoon + 86'400'000;
  client().Assign(client().Ask("far", "pay", far));  // open: 1 of 5
  client().Assign(Asks(50, kNoon));                  // ten windows exactly full
  const auto answers = client().Assign(Asks(7, kNoon, "next"));
  for (const Answer& answer : answers) {
    EXPECT_LE(answer.slot.window_start, kNoon + 11 * kWindow);
  }
  // And the other way round: the near crowd does not disturb who asks for the far window.
  EXPECT_EQ(client().Assign(client().Ask("far2", "pay", far)).slot.window_start, far);
}

TEST_P(SlotRules, AWindowWithoutARowBetweenFullOnesIsFilled) {
  client().Put(Pay(2));
  client().Assign(Asks(2, kNoon, "first"));
  client().Assign(Asks(2, kNoon + 3 * kWindow, "third"));
  client().Assign(Asks(2, kNoon + 5 * kWindow, "fifth"));
  client().Assign(Asks(8, kNoon));
  // 1 and 2 lie before the third window, 4 before the fifth, then 6.
  EXPECT_THAT(Counts(),
              ElementsAre(Pair(kNoon, 2), Pair(kNoon + kWindow, 2), Pair(kNoon + 2 * kWindow, 2),
                          Pair(kNoon + 3 * kWindow, 2), Pair(kNoon + 4 * kWindow, 2),
                          Pair(kNoon + 5 * kWindow, 2), Pair(kNoon + 6 * kWindow, 2)));
}

TEST_P(SlotRules, ALowerMaximumKeepsTheCounters) {
  client().Put(Pay(10));
  client().Assign(Asks(25, kNoon));  // 10, 10, 5
  EXPECT_EQ(client().Put(Pay(5)).version, 2);
  client().Assign(Asks(7, kNoon, "after"));
  EXPECT_THAT(Counts(),
              ElementsAre(Pair(kNoon, 10), Pair(kNoon + kWindow, 10), Pair(kNoon + 2 * kWindow, 5),
                          Pair(kNoon + 3 * kWindow, 5), Pair(kNoon + 4 * kWindow, 2)));
}

TEST_P(SlotRules, AHigherMaximumReopensFullWindows) {
  client().Put(Pay(2));
  client().Assign(Asks(5, kNoon));  // 2, 2, 1
  client().Put(Pay(4));
  client().Assign(Asks(6, kNoon, "after"));
  EXPECT_THAT(Counts(),
              ElementsAre(Pair(kNoon, 4), Pair(kNoon + kWindow, 4), Pair(kNoon + 2 * kWindow, 3)));
}

TEST_P(SlotRules, AnotherWindowSizeCountsTheSlotsThatFallIntoItsWindows) {
  client().Put(Pay(3));
  client().Assign(Asks(9, kNoon));  // three windows of 4 s: 3, 3, 3
  client().Put(Pay(6, 2 * kWindow));
  const auto windows = client().Windows("pay");
  ASSERT_GE(windows.size(), 2U);
  EXPECT_EQ(windows[0].start, kNoon);
  EXPECT_EQ(windows[0].used(), 6);
  EXPECT_FALSE(windows[0].open);
  EXPECT_EQ(windows[1].used(), 3);
  // 6 of 6 are used in the first 8 s, 3 in the second: three more fit there.
  const auto answers = client().Assign(Asks(4, kNoon, "after"));
  std::multiset<Millis> starts;
  for (const Answer& answer : answers) starts.insert(answer.slot.window_start);
  EXPECT_THAT(starts, ElementsAre(kNoon + 2 * kWindow, kNoon + 2 * kWindow, kNoon + 2 * kWindow,
                                  kNoon + 4 * kWindow));
  // Cancelling a slot of the old size makes room in the window of the new size.
  for (int i = 0; i < 9; ++i) {
    const std::string event = "e" + std::to_string(i);
    if (client().Find(event)->window_start == kNoon) {
      client().Cancel(event);
      break;
    }
  }
  EXPECT_EQ(client().Assign(client().Ask("x", "pay", kNoon)).slot.window_start, kNoon);
}

TEST_P(SlotRules, ConfigsDoNotInterfere) {
  client().Put(Pay(2));
  client().Put({.name = "other", .window_size = kWindow, .max_per_window = 2});
  client().Assign(Asks(6, kNoon));
  EXPECT_EQ(client().Assign(client().Ask("o", "other", kNoon)).slot.window_start, kNoon);
}

TEST_P(SlotRules, ABatchAnswersEachEventForItself) {
  client().Put(Pay(2));
  client().Put({.name = "other", .window_size = 1'000, .max_per_window = 1});
  client().Assign(client().Ask("old", "pay", kNoon));
  const auto answers = client().Assign(
      std::vector<Ask>{client().Ask("1", "other", kNoon), client().Ask("2", "missing", kNoon),
                       client().Ask("old", "pay", kNoon), client().Ask("3", "pay", kNoon),
                       client().Ask("4", "other", kNoon)});
  EXPECT_EQ(answers[0].outcome, Outcome::kNew);
  EXPECT_EQ(answers[1].outcome, Outcome::kUnknownConfig);
  EXPECT_EQ(answers[2].outcome, Outcome::kExisting);
  EXPECT_EQ(answers[3].outcome, Outcome::kNew);
  EXPECT_EQ(answers[4].slot.window_start, kNoon + 1'000);
}

TEST_P(SlotRules, TheSearchEndsAtTheHeadroom) {
  // Two classes of weight 1 share 2 places: one each. The shares hold in more windows than the
  // search may pass over, so tenant a gets the first window, and of those after it the first and
  // two more.
  Config config = Pay(2);
  config.headroom = 2;
  config.fair_windows = 100;
  config.tenants = {{"a", 1}};
  client().Put(*CheckConfig(config));
  const auto answers = client().Assign(Asks(6, kNoon, "e", "a"));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(answers[static_cast<std::size_t>(i)].slot.window_start, kNoon + i * kWindow);
  }
  EXPECT_EQ(answers[4].outcome, Outcome::kExhausted);
  EXPECT_EQ(answers[5].outcome, Outcome::kExhausted);
  EXPECT_EQ(client().Find("e4"), std::nullopt);
  EXPECT_EQ(client().Assign(client().Ask("e4", "pay", kNoon, "a")).outcome, Outcome::kExhausted);
  // Everybody else still has his place in the first window.
  EXPECT_EQ(client().Assign(client().Ask("b", "pay", kNoon, "b")).slot.window_start, kNoon);
}

TEST_P(SlotRules, TimeEndsWithTheYear9999) {
  client().Put(Pay(1));
  const Millis last = WindowOf(kMaxInstant, kWindow);
  EXPECT_EQ(client().Assign(client().Ask("a", "pay", last)).outcome, Outcome::kNew);
  EXPECT_EQ(client().Assign(client().Ask("b", "pay", last)).outcome, Outcome::kExhausted);
}

TEST_P(SlotRules, ABulkFeedLeavesTheOtherTenantsTheirShareOfTheNearWindows) {
  // Weights a:1, b:1 and 1 for all others: 3 of 9 places each, in the first window and the 5 after
  // it.
  Config config = Pay(9);
  config.fair_windows = 5;
  config.tenants = {{"a", 1}, {"b", 1}};
  client().Put(*CheckConfig(config));
  client().Assign(Asks(100, kNoon, "a", "a"));
  // 6 windows × 3 = 18; the other 82 fill windows of 9: nine of them and one event more.
  const auto counts = Counts();
  ASSERT_EQ(counts.size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(counts[i].second, i < 6 ? 3 : i < 15 ? 9 : 1) << i;
  }
  const auto others = client().Assign(Asks(3, kNoon, "b", "b"));
  for (const Answer& answer : others) EXPECT_EQ(answer.slot.window_start, kNoon);
  EXPECT_EQ(client().Assign(client().Ask("b3", "pay", kNoon, "b")).slot.window_start,
            kNoon + kWindow);
  EXPECT_EQ(client().Assign(client().Ask("c", "pay", kNoon)).slot.window_start, kNoon);
}

TEST_P(SlotRules, SharesNeverLetAWindowExceedItsMaximum) {
  Config config = Pay(10);
  config.tenants = {{"a", 3}, {"b", 2}, {"c", 1}};
  client().Put(*CheckConfig(config));
  std::vector<Ask> asks;
  for (const char* tenant : {"a", "b", "c", ""}) {
    for (Ask& ask : Asks(60, kNoon, std::string(tenant) + "-", tenant)) {
      asks.push_back(std::move(ask));
    }
  }
  client().Assign(std::move(asks));
  std::int64_t total = 0;
  for (const WindowLoad& window : client().Windows("pay")) {
    EXPECT_LE(window.count, 10);
    total += window.count;
  }
  EXPECT_EQ(total, 240);
}

TEST_P(SlotRules, TenantsThatGetSharesLaterAreCountedFromTheirSlots) {
  client().Put(Pay(4));
  client().Assign(Asks(2, kNoon, "a", "a"));
  Config config = Pay(4);
  config.tenants = {{"a", 1}};  // and 1 for the others: 2 places each
  client().Put(*CheckConfig(config));
  EXPECT_EQ(client().Assign(client().Ask("a2", "pay", kNoon, "a")).slot.window_start,
            kNoon + kWindow);
  client().Cancel("a0");
  EXPECT_EQ(client().Assign(client().Ask("a3", "pay", kNoon, "a")).slot.window_start, kNoon);
}

TEST_P(SlotRules, ReschedulingMovesTheEventAndFreesItsPlace) {
  client().Put(Pay(1));
  client().Assign(Asks(2, kNoon));  // e0 and e1 in two windows
  const Slot before = *client().Find("e0");
  const auto moved = client().Reschedule({.event_id = "e0", .requested = kNoon + 60'000});
  ASSERT_TRUE(moved.has_value());
  EXPECT_EQ(moved->outcome, Outcome::kNew);
  EXPECT_EQ(moved->slot.window_start, kNoon + 60'000);
  EXPECT_EQ(client().Find("e0"), moved->slot);
  EXPECT_EQ(client().Assign(client().Ask("n", "pay", kNoon)).slot.window_start,
            before.window_start);
  // To its own time again: its own place counts as free.
  EXPECT_EQ(client().Reschedule({.event_id = "e0", .requested = kNoon + 60'000})->slot.window_start,
            kNoon + 60'000);
  EXPECT_FALSE(client().Reschedule({.event_id = "nobody", .requested = kNoon}).has_value());
}

TEST_P(SlotRules, AnEventThatCannotBeRescheduledKeepsItsSlot) {
  client().Put(Pay(1));
  client().Assign(client().Ask("e", "pay", kNoon));
  client().Assign(client().Ask("last", "pay", WindowOf(kMaxInstant, kWindow)));
  const Slot before = *client().Find("e");
  EXPECT_EQ(client().Reschedule({.event_id = "e", .requested = kMaxInstant})->outcome,
            Outcome::kExhausted);
  EXPECT_EQ(client().Find("e"), before);
  EXPECT_EQ(
      client().Reschedule({.event_id = "e", .config = "missing", .requested = kNoon})->outcome,
      Outcome::kUnknownConfig);
  EXPECT_EQ(client().Find("e"), before);
  EXPECT_THAT(Counts(), testing::Contains(Pair(kNoon, 1)));
}

TEST_P(SlotRules, ADayWithoutItsThirdHourHasNoGap) {
  client().Put(Pay(1));
  // Warsaw, 2025-03-30: 01:59:58+01:00 and 03:00:02+02:00 are four seconds apart.
  const Millis before = *ParseInstant("2025-03-30T01:59:56+01:00");
  const Millis after = *ParseInstant("2025-03-30T03:00:00+02:00");
  EXPECT_EQ(client().Assign(client().Ask("a", "pay", before)).slot.window_start, before);
  EXPECT_EQ(client().Assign(client().Ask("b", "pay", before)).slot.window_start, after);
  // And the day that has its third hour twice: the same wall clock, an hour apart.
  const Millis summer = *ParseInstant("2025-10-26T02:30:00+02:00");
  const Millis winter = *ParseInstant("2025-10-26T02:30:00+01:00");
  EXPECT_EQ(client().Assign(client().Ask("s", "pay", summer)).slot.window_start, summer);
  EXPECT_EQ(client().Assign(client().Ask("w", "pay", winter)).slot.window_start, winter);
  EXPECT_EQ(winter - summer, 3'600'000);
}

TEST_P(SlotRules, ConfigsHaveVersionsOfWhichOneIsActive) {
  Config config = Pay(3);
  config.headroom = 7;
  config.tenants = {{"z", 2}, {"a", 5}};
  const Config first = client().Put(*CheckConfig(config));
  EXPECT_EQ(first.version, 1);
  EXPECT_EQ(client().Get("pay"), first);
  const Config second = client().Put(Pay(4, 9'000));
  EXPECT_EQ(second.version, 2);
  EXPECT_EQ(client().Get("pay"), second);
  EXPECT_THAT(client().List(), ElementsAre(second));
  const auto versions = client().Versions("pay");
  ASSERT_EQ(versions.size(), 2U);
  EXPECT_EQ(versions[0], second);
  EXPECT_FALSE(versions[1].active);
  EXPECT_EQ(versions[1].tenants, first.tenants);
  client().Assign(client().Ask("e", "pay", kNoon));
  EXPECT_TRUE(client().Deactivate("pay"));
  EXPECT_FALSE(client().Deactivate("pay"));
  EXPECT_FALSE(client().Get("pay").has_value());
  EXPECT_EQ(client().Assign(client().Ask("f", "pay", kNoon)).outcome, Outcome::kUnknownConfig);
  EXPECT_EQ(client().Assign(client().Ask("e", "pay", kNoon)).outcome, Outcome::kExisting);
  EXPECT_TRUE(client().Cancel("e").has_value());
  EXPECT_EQ(client().Put(Pay(1)).version, 3);
}

TEST_P(SlotRules, JitterIsUniformOverTheWindow) {
  client().Put(Pay(10'000));
  // 10,000 events in 40 buckets of 100 ms: 250 expected in each. Chi-square with 39 degrees of
  // freedom exceeds 72.05 once in a thousand times; the seed is fixed.
  std::array<int, 40> buckets{};
  for (const Answer& answer : client().Assign(Asks(10'000, kNoon))) {
    ++buckets.at(static_cast<std::size_t>((answer.slot.scheduled - kNoon) / 100));
  }
  double chi_square = 0;
  for (int seen : buckets) chi_square += (seen - 250.0) * (seen - 250.0) / 250.0;
  EXPECT_LT(chi_square, 72.05);
}

TEST_P(SlotRules, JitterIsUniformOverTheRestOfTheFirstWindow) {
  client().Put(Pay(10'000));
  // Half of the window is left: 5,000 places, 20 buckets of 100 ms, 250 each; 19 degrees: 43.82.
  std::array<int, 20> buckets{};
  for (const Answer& answer : client().Assign(Asks(5'000, kNoon + 2'000))) {
    ++buckets.at(static_cast<std::size_t>((answer.slot.scheduled - kNoon - 2'000) / 100));
  }
  double chi_square = 0;
  for (int seen : buckets) chi_square += (seen - 250.0) * (seen - 250.0) / 250.0;
  EXPECT_LT(chi_square, 43.82);
}

TEST_P(SlotRules, ManyThreadsFillTheWindowsWithoutOverfillingOne) {
  client().Put(Pay(7));
  std::vector<std::vector<Ask>> work(8);
  for (std::size_t t = 0; t < work.size(); ++t) {
    // A quarter of the events is asked for by two threads.
    for (int i = 0; i < 200; ++i) {
      const bool common = i % 4 == 0;
      work[t].push_back(
          client().Ask((common ? "c" + std::to_string(t / 2) : "t" + std::to_string(t)) + "-" +
                           std::to_string(i),
                       "pay", kNoon + (i % 3) * 1'000));
    }
  }
  {
    std::vector<std::jthread> threads;
    for (auto& asks : work) {
      threads.emplace_back([&asks, this] {
        for (std::size_t i = 0; i < asks.size(); i += 10) {
          client().Assign(std::vector<Ask>(asks.begin() + static_cast<std::ptrdiff_t>(i),
                                           asks.begin() + static_cast<std::ptrdiff_t>(i + 10)));
        }
      });
    }
  }
  // 8 × 150 of their own and 4 × 50 in common.
  std::int64_t total = 0;
  for (const WindowLoad& window : client().Windows("pay")) {
    EXPECT_LE(window.count, 7);
    total += window.count;
  }
  EXPECT_EQ(total, 1'400);
}

INSTANTIATE_TEST_SUITE_P(Stores, SlotRules, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
