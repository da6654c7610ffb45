#include "slots/api/slots_watch.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/idle_slot_store.h"

namespace weir::slots {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kHour = 3600 * kSecond;

class WatchedStore final : public test::IdleSlotStore {
 public:
  bool is_away = false;

  void GetConfig(std::string, Done<std::optional<Config>> done) override {
    if (is_away) return done(Error{Code::kUnavailable, "away"});
    done(std::optional<Config>());
  }
};

TEST(SlotsWatch, SeesTheStoreGoAndComeBackAlsoIfTheClockIsSetBack) {
  WatchedStore store;
  SlotsWatch watch(store);
  watch.OnSecond(100 * kHour);
  EXPECT_TRUE(watch.up());
  store.is_away = true;
  for (int i = 0; i < 4; ++i) watch.OnSecond(99 * kHour + i * kSecond);
  EXPECT_FALSE(watch.up());
  store.is_away = false;
  for (int i = 0; i < 4; ++i) watch.OnSecond(98 * kHour + i * kSecond);
  EXPECT_TRUE(watch.up());
}

/// Holds calls for backlogs, and refuses or counts calls for windows.
class BehindStore final : public test::IdleSlotStore {
 public:
  Done<std::vector<Backlog>> asked;
  int windows = 0;

  void ListBacklogs(Millis, Done<std::vector<Backlog>> done) override { asked = std::move(done); }
  void ListWindows(std::string, Millis, std::size_t, Done<std::vector<WindowLoad>> done) override {
    ++windows;
    done(Error{Code::kUnavailable, "closing"});
  }
};

std::vector<Backlog> TwoBehind() {
  Backlog backlog;
  backlog.config = "pay";
  backlog.due = 5;
  return {backlog, backlog};
}

TEST(SlotsWatch, GoesOnIfTheStoreRefusesAtOnce) {
  BehindStore store;
  SlotsWatch watch(store);
  watch.OnSecond(kHour);
  store.asked(TwoBehind());
  EXPECT_EQ(store.windows, 2);
}

TEST(SlotsWatch, AsksNothingOfAStoreThatIsGoneWhenItsAnswerComesLate) {
  BehindStore store;
  SlotsWatch watch(store);
  watch.OnSecond(kHour);
  watch.Close();
  store.asked(TwoBehind());
  EXPECT_EQ(store.windows, 0);
}

}  // namespace
}  // namespace weir::slots
