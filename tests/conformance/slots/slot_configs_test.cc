#include <gmock/gmock.h>

#include <set>

#include "slots/config.h"
#include "slots/window.h"
#include "store_fixture.h"

// Versions of configs and shares of tenants, on every store. Times as in slot_store_test.cc.

namespace weir::slots {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr Millis kNoon = 1'748'779'200'000;  // 2025-06-01T12:00:00Z, a multiple of 4,000
constexpr Millis kWindow = 4'000;

Config Pay(std::int64_t max, Millis size = kWindow) {
  return {.name = "pay", .window_size = size, .max_per_window = max};
}

using SlotConfigs = StoreTest;

TEST_P(SlotConfigs, ALowerMaximumKeepsTheCounters) {
  client().Put(Pay(10));
  client().Assign(Asks(25, kNoon));  // 10, 10, 5
  EXPECT_EQ(client().Put(Pay(5)).version, 2);
  client().Assign(Asks(7, kNoon, "after"));
  EXPECT_THAT(Counts(),
              ElementsAre(Pair(kNoon, 10), Pair(kNoon + kWindow, 10), Pair(kNoon + 2 * kWindow, 5),
                          Pair(kNoon + 3 * kWindow, 5), Pair(kNoon + 4 * kWindow, 2)));
}

TEST_P(SlotConfigs, AHigherMaximumReopensFullWindows) {
  client().Put(Pay(2));
  client().Assign(Asks(5, kNoon));  // 2, 2, 1
  client().Put(Pay(4));
  client().Assign(Asks(6, kNoon, "after"));
  EXPECT_THAT(Counts(),
              ElementsAre(Pair(kNoon, 4), Pair(kNoon + kWindow, 4), Pair(kNoon + 2 * kWindow, 3)));
}

TEST_P(SlotConfigs, AnotherWindowSizeCountsTheSlotsThatFallIntoItsWindows) {
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

TEST_P(SlotConfigs, ABulkFeedLeavesTheOtherTenantsTheirShareOfTheNearWindows) {
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

TEST_P(SlotConfigs, SharesNeverLetAWindowExceedItsMaximum) {
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

TEST_P(SlotConfigs, TenantsThatGetSharesLaterAreCountedFromTheirSlots) {
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

TEST_P(SlotConfigs, ConfigsHaveVersionsOfWhichOneIsActive) {
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

INSTANTIATE_TEST_SUITE_P(Stores, SlotConfigs, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
