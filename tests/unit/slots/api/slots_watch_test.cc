#include "slots/api/slots_watch.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

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

}  // namespace
}  // namespace weir::slots
