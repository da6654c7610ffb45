#include "notify/tally.h"

#include <gtest/gtest.h>

namespace weir::notify {
namespace {

constexpr Micros kMinute = 60'000'000;

TEST(Tally, TakesPlacesUpToTheLimitAndCountsWhatIsConfirmed) {
  Tally tally({"u", 3, 1, 1, 0}, 10);
  EXPECT_TRUE(tally.Take());
  EXPECT_TRUE(tally.Take());
  EXPECT_FALSE(tally.Take());  // 1 + 2 = 3
  tally.Confirm();
  EXPECT_EQ(tally.count(), 2);  // the other place was never confirmed
  EXPECT_TRUE(tally.changed());
  EXPECT_FALSE(tally.full());
  EXPECT_FALSE(tally.was_full());
}

TEST(Tally, StartsAWindowThatIsOverAnew) {
  Tally tally({"u", 2, 1, 2, 0}, kMinute);
  EXPECT_TRUE(tally.Take());
  tally.Confirm();
  EXPECT_EQ(tally.count(), 1);
  EXPECT_EQ(tally.row().last_refresh_time, kMinute);
  const SendAnswer sent = tally.Sent("e");
  EXPECT_EQ(sent.remaining, 1);
  EXPECT_EQ(sent.resets_at, 2 * kMinute);
}

TEST(Tally, AFullWindowSaysWhenItEnds) {
  Tally tally({"u", 2, 1, 2, 5}, kMinute);
  EXPECT_FALSE(tally.Take());
  EXPECT_TRUE(tally.was_full());
  EXPECT_EQ(tally.Limited().outcome, Outcome::kLimited);
  EXPECT_EQ(tally.Limited().resets_at, kMinute + 5);
}

TEST(Tally, AClockThatWentBackStartsNoWindow) {
  Tally tally({"u", 1, 1, 1, kMinute}, 0);
  EXPECT_FALSE(tally.Take());
}

// Started by a clock that was a year ahead, and has been corrected since.
TEST(Tally, AWindowThatNobodyWillSeeTheEndOfIsStartedAnew) {
  constexpr Micros kYear = 365 * 24 * 60 * kMinute;
  Tally tally({"u", 1, 10, 1, kYear}, kMinute);
  EXPECT_TRUE(tally.Take());
  EXPECT_EQ(tally.row().last_refresh_time, kMinute);
}

TEST(Places, AreTakenInBothWindowsOrInNone) {
  Tally user({"u", 3, 1, 0, 0}, 10);
  Tally channel({ChannelKey("u", "email"), 1, 2, 0, 0}, 10);
  Places places(user, &channel);
  ASSERT_TRUE(places.Take());
  places.Confirm();
  EXPECT_EQ(places.Sent("e").remaining, 0);
  EXPECT_EQ(places.Sent("e").event_id, "e");
  EXPECT_FALSE(places.Take());
  EXPECT_EQ(user.count(), 1);
  const auto full = [](const Tally& window) { return window.full(); };
  EXPECT_EQ(places.Full(full), &channel);
  EXPECT_TRUE(places.Full(full)->Limited().of_channel);
  // If both are full, the one that ends last determines when to retry.
  Places alone(user, nullptr);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(alone.Take());
    alone.Confirm();
  }
  EXPECT_EQ(alone.Full(full), &user);
  EXPECT_EQ(places.Full(full), &channel);
}

TEST(RowName, IsOfAUserOrOfAChannel) {
  const std::string key = ChannelKey("4/2", "email");
  EXPECT_EQ(SplitRowName(key).user_id, "4/2");
  EXPECT_EQ(SplitRowName(key).channel, "email");
  EXPECT_EQ(SplitRowName("4/2").user_id, "4/2");
  EXPECT_EQ(SplitRowName("4/2").channel, "");
  EXPECT_FALSE(CheckUserId(key).ok());
}

}  // namespace
}  // namespace weir::notify
