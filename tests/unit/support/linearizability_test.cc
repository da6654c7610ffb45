#include "support/linearizability.h"

#include <gtest/gtest.h>

namespace weir::test {
namespace {

// A window of 100 and a limit of 2 throughout: windows are [0, 100), [100, 200), …
constexpr std::int64_t kWindow = 100;

bool Explained(std::vector<CheckRecord> history, std::int64_t limit = 2) {
  return !ExplainFixedWindow(std::move(history), limit, kWindow);
}

TEST(FixedWindowHistory, OneAfterTheOtherIsExplained) {
  EXPECT_TRUE(Explained({{0, 5, true}, {6, 9, true}, {10, 15, false}, {110, 115, true}}));
}

TEST(FixedWindowHistory, OneGrantTooManyIsNot) {
  EXPECT_FALSE(Explained({{0, 5, true}, {6, 9, true}, {10, 15, true}}));
}

TEST(FixedWindowHistory, ARefusalBeforeTheLimitWasReachedIsNot) {
  // The second grant was sent after the denial was answered: only one had been granted by then.
  EXPECT_FALSE(Explained({{0, 5, true}, {6, 9, false}, {10, 15, true}}));
  // If both were under way at the same time, the grant may have come first.
  EXPECT_TRUE(Explained({{0, 5, true}, {6, 12, false}, {10, 15, true}}));
}

TEST(FixedWindowHistory, ARefusalInAWindowThatWasNeverFullIsNot) {
  EXPECT_FALSE(Explained({{0, 5, true}, {6, 9, false}}));
  EXPECT_FALSE(Explained({{0, 5, true}, {6, 9, true}, {110, 115, false}}));
}

TEST(FixedWindowHistory, AGrantAcrossTheBorderBelongsToEitherWindow) {
  // Three sent in the first window, limit 2: one of them was decided in the second, which then has
  // room for one more, but not for two.
  EXPECT_TRUE(Explained({{90, 95, true}, {91, 96, true}, {92, 104, true}, {105, 109, true}}));
  EXPECT_FALSE(Explained(
      {{90, 95, true}, {91, 96, true}, {92, 104, true}, {105, 109, true}, {106, 110, true}}));
}

TEST(FixedWindowHistory, ARefusalAcrossTheBorderNeedsEitherWindowFull) {
  EXPECT_TRUE(Explained({{90, 95, true}, {91, 96, true}, {92, 104, false}}));
  EXPECT_TRUE(Explained({{92, 108, false}, {101, 103, true}, {102, 104, true}}));
  EXPECT_FALSE(Explained({{92, 101, false}, {102, 103, true}, {103, 104, true}}));
  EXPECT_FALSE(Explained({{90, 95, true}, {92, 104, false}}));
}

TEST(FixedWindowHistory, AGrantThatCrossesIsCountedOnce) {
  // The crossing grant would have to fill both windows for both denials to be right.
  EXPECT_FALSE(Explained(
      {{50, 55, true}, {90, 105, true}, {92, 99, false}, {106, 107, true}, {108, 109, false}}));
  EXPECT_TRUE(Explained({{50, 55, true}, {90, 105, true}, {92, 99, false}, {106, 107, true}}));
}

TEST(FixedWindowHistory, ChecksThatTookLongerThanAWindowAreLeftOutAndTheOthersJudged) {
  EXPECT_TRUE(Explained({{0, 205, true}}));
  // The long grant may have been the second of the first window, or of the last.
  EXPECT_TRUE(Explained({{0, 205, true}, {6, 9, true}, {10, 15, false}}));
  EXPECT_TRUE(Explained({{0, 205, true}, {206, 209, true}, {210, 215, false}}));
  EXPECT_TRUE(Explained({{0, 205, false}, {6, 9, true}}));
  // It explains nothing in windows before it was sent or after it was answered.
  EXPECT_FALSE(Explained({{0, 205, true}, {306, 309, true}, {310, 315, false}}));
  EXPECT_FALSE(Explained({{0, 205, true}, {6, 9, true}, {10, 15, true}, {16, 19, true}}));
}

// A bucket of 2 that gets a permit every 100.
bool Filled(std::vector<CheckRecord> history) {
  return !ExplainTokenBucket(std::move(history), 2, 100);
}

TEST(TokenBucketHistory, CapacityAtOnceThenOnePerPeriodIsExplained) {
  EXPECT_TRUE(
      Filled({{0, 1, true}, {1, 2, true}, {3, 4, false}, {101, 103, true}, {104, 105, false}}));
}

TEST(TokenBucketHistory, OneGrantTooManyIsNot) {
  EXPECT_FALSE(Filled({{0, 1, true}, {1, 2, true}, {3, 4, true}}));
  // 4 in 150: 2 + floor(150 / 100) = 3.
  EXPECT_FALSE(Filled({{0, 1, true}, {1, 2, true}, {110, 120, true}, {140, 150, true}}));
}

TEST(TokenBucketHistory, ARefusalThoughAPermitWasLeftIsNot) {
  EXPECT_FALSE(Filled({{0, 1, true}, {3, 4, false}}));
  EXPECT_FALSE(Filled({{0, 1, true}, {1, 2, true}, {110, 111, false}}));
  EXPECT_TRUE(Filled({{0, 1, true}, {1, 9, true}, {3, 4, false}}));
}

}  // namespace
}  // namespace weir::test
