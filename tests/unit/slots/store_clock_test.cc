#include "slots/store_clock.h"

#include <gtest/gtest.h>

// The caller's clock is the steady one; the store's is ahead of it by an offset.

namespace weir::slots {
namespace {

constexpr Millis kAhead = 1'000'000;

TEST(StoreClock, TheQuickestAnswerCounts) {
  StoreClock clock;
  clock.Note(kAhead + 150, 100, 200);  // a slow one: assumed to be read in its middle
  EXPECT_EQ(clock.least(), kAhead - 51);
  EXPECT_EQ(clock.most(), kAhead + 51);
  clock.Note(kAhead + 301, 300, 302);
  EXPECT_EQ(clock.least(), kAhead - 2);
  clock.Note(kAhead + 450, 400, 500);
  EXPECT_EQ(clock.least(), kAhead - 2) << "a slow one takes nothing back";
}

TEST(StoreClock, RoundingDoesNotMakeAnythingEarly) {
  StoreClock clock;
  // The store read 100.0 and the answer came at 100.9, which is rounded down to 100: the store may
  // be behind kAhead by up to 0.9.
  clock.Note(kAhead + 100, 100, 100);
  EXPECT_LT(clock.least(), kAhead);
  EXPECT_GT(clock.most(), kAhead);
}

TEST(StoreClock, ASmallStepForwardIsNoticedByTheFirstAnswerThatContradicts) {
  StoreClock clock;
  for (Millis at = 0; at < 10'000; at += 100) clock.Note(kAhead + at, at, at + 2);
  ASSERT_LE(clock.most(), kAhead + 2);
  clock.Note(kAhead + 120 + 10'000, 10'000, 10'002);  // 120 ms further ahead than before
  EXPECT_GE(clock.most(), kAhead + 120) << "what ends now must not be told as ended before";
}

TEST(StoreClock, ADriftBelowTheTimeOfAnAnswerIsFollowed) {
  StoreClock clock;
  Millis drift = 0;
  for (Millis at = 0; at < 60'000; at += 100) {
    drift = at / 1'000;  // one millisecond per second; answers take 90 ms
    clock.Note(kAhead + drift + at + 1, at, at + 90);
    EXPECT_GE(clock.most(), kAhead + drift - 2 * StoreClock::kPeriod / 1'000) << at;
  }
  EXPECT_GT(clock.most(), kAhead + 50);
}

TEST(StoreClock, AClockThatIsSetBackIsFollowed) {
  StoreClock clock;
  clock.Note(kAhead + 100, 100, 101);
  clock.Note(kAhead - 5'000 + 200, 200, 201);
  EXPECT_LT(clock.least(), kAhead - 4'990) << "nothing is executed before its time";
}

}  // namespace
}  // namespace weir::slots
