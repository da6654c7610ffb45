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
  // A request for the window's beginning may still get the other 8.
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

// A later time could not be written, nor requested.
TEST_P(SlotRules, NobodyIsScheduledAfterTheYear9999) {
  client().Put(Pay(1, 7'000));  // windows that do not end with the year
  int placed = 0;
  for (const Answer& answer : client().Assign(Asks(20, kMaxInstant - 60'000))) {
    if (answer.outcome == Outcome::kExhausted) continue;
    ASSERT_EQ(answer.outcome, Outcome::kNew);
    EXPECT_LE(answer.slot.scheduled, kMaxInstant);
    ++placed;
  }
  // The year ends 5,000 ms into a window, so that its last whole ones begin 12,000, 19,000 …
  // 54,000 ms before: seven. The first one, begun before the requested time, has no room.
  EXPECT_EQ(placed, 7);
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
  // And the other way round: the near crowd does not affect requests for the far window.
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
  // Two classes of weight 1 share 2 places: one each. The shares apply to more windows than the
  // search may skip, so tenant a gets the first window, and of those after it the first and
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
  // All others still have their place in the first window.
  EXPECT_EQ(client().Assign(client().Ask("b", "pay", kNoon, "b")).slot.window_start, kNoon);
}

TEST_P(SlotRules, TimeEndsWithTheYear9999) {
  client().Put(Pay(1));
  const Millis last = WindowOf(kMaxInstant, kWindow);
  EXPECT_EQ(client().Assign(client().Ask("a", "pay", last)).outcome, Outcome::kNew);
  EXPECT_EQ(client().Assign(client().Ask("b", "pay", last)).outcome, Outcome::kExhausted);
}

TEST_P(SlotRules, ADayWithoutItsThirdHourHasNoGap) {
  client().Put(Pay(1));
  // Warsaw, 2025-03-30: 01:59:58+01:00 and 03:00:02+02:00 are four seconds apart.
  const Millis before = *ParseInstant("2025-03-30T01:59:56+01:00");
  const Millis after = *ParseInstant("2025-03-30T03:00:00+02:00");
  EXPECT_EQ(client().Assign(client().Ask("a", "pay", before)).slot.window_start, before);
  EXPECT_EQ(client().Assign(client().Ask("b", "pay", before)).slot.window_start, after);
  // And the day on which the third hour occurs twice: the same wall clock, an hour apart.
  const Millis summer = *ParseInstant("2025-10-26T02:30:00+02:00");
  const Millis winter = *ParseInstant("2025-10-26T02:30:00+01:00");
  EXPECT_EQ(client().Assign(client().Ask("s", "pay", summer)).slot.window_start, summer);
  EXPECT_EQ(client().Assign(client().Ask("w", "pay", winter)).slot.window_start, winter);
  EXPECT_EQ(winter - summer, 3'600'000);
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
    // A quarter of the events is requested by two threads.
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
  // 8 × 150 of their own and 4 × 50 shared.
  std::int64_t total = 0;
  for (const WindowLoad& window : client().Windows("pay")) {
    EXPECT_LE(window.count, 7);
    total += window.count;
  }
  EXPECT_EQ(total, 1'400);
}

// A full window has a successor, which may be empty.
TEST_P(SlotRules, VerifyCountsTheWindowsThatHaveEvents) {
  client().Put(Pay(2));
  client().Assign(Asks(4, kNoon));
  const Findings findings = client().Verify();
  EXPECT_EQ(findings.windows, 2);
  EXPECT_EQ(findings.slots, 4);
}

INSTANTIATE_TEST_SUITE_P(Stores, SlotRules, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
