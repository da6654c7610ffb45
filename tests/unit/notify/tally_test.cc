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

}  // namespace
}  // namespace weir::notify
