#include <gmock/gmock.h>

#include <thread>

#include "slots/window.h"
#include "store_fixture.h"

// One event and its id, on every store: repeated requests, cancelling, moving. Times as in
// slot_store_test.cc.

namespace weir::slots {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr Millis kNoon = 1'748'779'200'000;  // 2025-06-01T12:00:00Z, a multiple of 4,000
constexpr Millis kWindow = 4'000;

Config Pay(std::int64_t max, Millis size = kWindow) {
  return {.name = "pay", .window_size = size, .max_per_window = max};
}

using SlotEvents = StoreTest;

TEST_P(SlotEvents, TheSameEventGetsTheSameAnswerForEver) {
  client().Put(Pay(1));
  const Answer first = client().Assign(client().Ask("e", "pay", kNoon, "acme"));
  EXPECT_EQ(first.outcome, Outcome::kNew);
  const Answer again = client().Assign(client().Ask("e", "pay", kNoon, "acme"));
  EXPECT_EQ(again.outcome, Outcome::kExisting);
  EXPECT_EQ(again.slot, first.slot);
  EXPECT_EQ(client().Find("e"), first.slot);
  client().Put(Pay(5));
  EXPECT_EQ(client().Assign(client().Ask("e", "pay", kNoon, "acme")).slot, first.slot);
  EXPECT_THAT(Counts(), ElementsAre(Pair(kNoon, 1)));
}

TEST_P(SlotEvents, ACancelledEventStaysCancelledWhenItsFeedComesAgain) {
  client().Put(Pay(2));
  client().Assign(Asks(2, kNoon));
  client().Cancel("e1");
  const Answer again = client().Assign(client().Ask("e1", "pay", kNoon));
  EXPECT_EQ(again.outcome, Outcome::kCancelled);
  EXPECT_EQ(again.slot.config, "pay");
  EXPECT_THAT(Counts(), ElementsAre(Pair(kNoon, 1)));
  EXPECT_EQ(client().Look("e1")->state, State::kCancelled);
}

TEST_P(SlotEvents, TakingACancellationBackIsACallOfItsOwn) {
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

TEST_P(SlotEvents, TheFirstMomentOf1970IsATimeLikeAnyOther) {
  client().Put(Pay(5));
  client().Assign(Asks(2, kNoon));
  const auto moved = client().Reschedule({.event_id = "e0", .requested = 0});
  ASSERT_TRUE(moved.has_value());
  EXPECT_EQ(moved->slot.requested, 0);
  EXPECT_EQ(moved->slot.window_start, 0);
  client().Cancel("e1");
  EXPECT_EQ(client().Restore({.event_id = "e1", .requested = 0})->slot.window_start, 0);
}

TEST_P(SlotEvents, AnIdOfAnotherConfigOrTimeIsAConflict) {
  client().Put(Pay(5));
  client().Put({.name = "other", .window_size = kWindow, .max_per_window = 2});
  const Slot there = client().Assign(client().Ask("e", "pay", kNoon)).slot;
  for (const Ask& ask : {client().Ask("e", "other", kNoon), client().Ask("e", "nothing", kNoon),
                         client().Ask("e", "pay", kNoon + 1)}) {
    const Answer answer = client().Assign(ask);
    EXPECT_EQ(answer.outcome, Outcome::kConflict);
    EXPECT_EQ(answer.slot, there) << "answered as what it is, with its config";
  }
}

TEST_P(SlotEvents, AnIdWithAnotherTenantOrPayloadIsAConflict) {
  client().Put(Pay(5));
  const auto ask = [&](const char* tenant, const char* payload) {
    Ask made = client().Ask("e", "pay", kNoon, tenant);
    made.payload = payload;
    return made;
  };
  const Slot there = client().Assign(ask("acme", "10 EUR")).slot;
  for (const Ask& other :
       {ask("acme", "20 EUR"), ask("acme", ""), ask("", "10 EUR"), ask("other", "10 EUR")}) {
    const Answer answer = client().Assign(other);
    EXPECT_EQ(answer.outcome, Outcome::kConflict) << other.tenant << ", " << other.payload;
    EXPECT_EQ(answer.slot, there);
  }
  EXPECT_EQ(client().Assign(ask("acme", "10 EUR")).outcome, Outcome::kExisting);
  EXPECT_EQ(client().Look("e")->payload, "10 EUR");
  client().Cancel("e");
  EXPECT_EQ(client().Assign(ask("acme", "10 EUR")).outcome, Outcome::kCancelled);
  EXPECT_EQ(client().Assign(ask("acme", "20 EUR")).outcome, Outcome::kConflict);
}

TEST_P(SlotEvents, AnEventTwiceInABatchWithAnotherPayloadIsAConflict) {
  client().Put(Pay(5));
  std::vector<Ask> asks(3, client().Ask("e", "pay", kNoon));
  asks[1].payload = "20 EUR";
  const auto answers = client().Assign(asks);
  EXPECT_EQ(answers[0].outcome, Outcome::kNew);
  EXPECT_EQ(answers[1].outcome, Outcome::kConflict);
  EXPECT_EQ(answers[2].outcome, Outcome::kExisting);
}

// A reused id of a cancelled event must not be mistaken for the event that was meant.
TEST_P(SlotEvents, ACancelledIdOfAnotherConfigOrTimeIsAConflictToo) {
  client().Put(Pay(5));
  client().Put({.name = "other", .window_size = kWindow, .max_per_window = 2});
  const Slot there = client().Assign(client().Ask("e", "pay", kNoon)).slot;
  client().Cancel("e");
  const auto answers = client().Assign(
      std::vector<Ask>{client().Ask("e", "other", kNoon), client().Ask("n", "other", kNoon)});
  EXPECT_EQ(answers[0].outcome, Outcome::kConflict);
  EXPECT_EQ(answers[0].slot, there);
  EXPECT_EQ(answers[1].outcome, Outcome::kNew);
  EXPECT_EQ(client().Assign(client().Ask("e", "nothing", kNoon)).outcome, Outcome::kConflict);
  EXPECT_EQ(client().Assign(client().Ask("e", "pay", kNoon + 1)).outcome, Outcome::kConflict);
  const auto twice = client().Assign(
      std::vector<Ask>{client().Ask("e", "pay", kNoon), client().Ask("e", "pay", kNoon + 1)});
  EXPECT_EQ(twice[0].outcome, Outcome::kCancelled);
  EXPECT_EQ(twice[1].outcome, Outcome::kConflict);
}

// Requests of several callers go to the store together.
TEST_P(SlotEvents, WhoRepeatsARequestIsNotRefusedForAnotherOneInTheBatch) {
  client().Put(Pay(5));
  std::vector<Ask> asks(5, client().Ask("e", "pay", kNoon));
  asks[0].payload = "10 EUR";
  ASSERT_EQ(client().Assign(asks[0]).outcome, Outcome::kNew);
  std::swap(asks[0], asks[1]);
  asks[3].payload = "10 EUR";
  asks[4].payload = "30 EUR";
  const auto answers = client().Assign(asks);
  const std::vector<Outcome> expected = {Outcome::kConflict, Outcome::kExisting, Outcome::kConflict,
                                         Outcome::kExisting, Outcome::kConflict};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(answers[i].outcome, expected[i]) << i;
    EXPECT_EQ(answers[i].slot, answers[0].slot);
  }
  EXPECT_THAT(Counts(), ElementsAre(Pair(kNoon, 1)));
}

// The first one means another event; whoever means the one that is there must not be told so.
TEST_P(SlotEvents, WhoRepeatsARequestIsNotRefusedForAnotherConfigTimeOrTenantInTheBatch) {
  client().Put(Pay(5));
  client().Put({.name = "other", .window_size = kWindow, .max_per_window = 2});
  const Ask there = client().Ask("e", "pay", kNoon);
  ASSERT_EQ(client().Assign(there).outcome, Outcome::kNew);
  for (const Ask& first : {client().Ask("e", "other", kNoon), client().Ask("e", "pay", kNoon + 1),
                           client().Ask("e", "pay", kNoon, "acme")}) {
    const auto answers = client().Assign(std::vector<Ask>{first, there, first, there});
    for (std::size_t i = 0; i < answers.size(); ++i) {
      EXPECT_EQ(answers[i].outcome, i % 2 == 0 ? Outcome::kConflict : Outcome::kExisting) << i;
    }
  }
}

// That there is no config, or no time left, for one says nothing about the next.
TEST_P(SlotEvents, WhoAsksForARefusedIdInTheSameBatchIsNotRefusedForIt) {
  client().Put(Pay(5));
  Config strict = Pay(5);
  strict.name = "strict";
  strict.past = Past::kRefuse;
  client().Put(strict);
  const auto answers = client().Assign(
      std::vector<Ask>{client().Ask("a", "nothing", kNoon), client().Ask("a", "pay", kNoon),
                       client().Ask("a", "nothing", kNoon), client().Ask("a", "pay", kNoon),
                       client().Ask("b", "strict", kNoon), client().Ask("b", "nothing", kNoon),
                       client().Ask("b", "pay", kNoon)});
  const std::vector<Outcome> expected = {Outcome::kUnknownConfig,
                                         Outcome::kNew,
                                         Outcome::kUnknownConfig,
                                         Outcome::kExisting,
                                         Outcome::kPast,
                                         Outcome::kUnknownConfig,
                                         Outcome::kNew};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(answers[i].outcome, expected[i]) << i;
  EXPECT_THAT(Counts(), ElementsAre(Pair(kNoon, 2)));
}

// A store may leave some of many unanswered, and none with the answer to another.
TEST_P(SlotEvents, ManyRequestsForOneIdInABatchGetTheirOwnAnswers) {
  client().Put(Pay(5));
  std::vector<Ask> asks(40, client().Ask("e", "pay", kNoon));
  for (std::size_t i = 0; i < asks.size(); ++i) asks[i].payload = std::to_string(i) + " EUR";
  ASSERT_EQ(client().Assign(asks.back()).outcome, Outcome::kNew);
  std::size_t rounds = 0;
  while (!asks.empty() && ++rounds < 10) {
    const auto answers = client().Assign(asks);
    std::vector<Ask> rest;
    for (std::size_t i = 0; i < asks.size(); ++i) {
      const bool there = asks[i].payload == "39 EUR";
      if (answers[i].outcome == Outcome::kUnanswered) {
        rest.push_back(asks[i]);
      } else {
        EXPECT_EQ(answers[i].outcome, there ? Outcome::kExisting : Outcome::kConflict) << i;
      }
    }
    EXPECT_LT(rest.size(), asks.size());
    asks = std::move(rest);
  }
  EXPECT_TRUE(asks.empty());
}

TEST_P(SlotEvents, AnEventTwiceInABatchHasOneSlot) {
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

TEST_P(SlotEvents, FiftyCallersWithOneIdAtOnceGetOneSlot) {
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

TEST_P(SlotEvents, ReschedulingMovesTheEventAndFreesItsPlace) {
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
  // Back to its own time: its own place counts as free.
  EXPECT_EQ(client().Reschedule({.event_id = "e0", .requested = kNoon + 60'000})->slot.window_start,
            kNoon + 60'000);
  EXPECT_FALSE(client().Reschedule({.event_id = "nobody", .requested = kNoon}).has_value());
}

TEST_P(SlotEvents, AnEventThatCannotBeRescheduledKeepsItsSlot) {
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

INSTANTIATE_TEST_SUITE_P(Stores, SlotEvents, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
