#include "store/lease/rate_share.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace weir::store::lease {
namespace {

using namespace std::chrono_literals;
using algorithm::kShareUnits;

constexpr Nanos kSecond = 1'000'000'000;

/// Of a bucket of 8,000 that refills in a second: 7,000 a second and an initial 2,000 are shared.
class RateShareTest : public testing::Test {
 protected:
  void Grant(std::int64_t units, Nanos sent, Nanos now) {
    share_.OnAnswer(
        {.reserved = {Reserved{.units = units, .name = 1}, {}}, .sent = sent, .now = now}, {});
  }
  /// How much can be spent at this moment.
  std::int64_t Spend(Nanos now) {
    std::int64_t spent = 0;
    while (share_.Take(now, 1)) ++spent;
    return spent;
  }

  const algorithm::RateTerms terms_ =
      algorithm::RateTermsFor(*Quota::TokenBucket(8000, 8000))->rate;
  RateShare share_{terms_, 1, 0};
};

TEST_F(RateShareTest, TheSharedPartIsAQuarterOfTheBurstAndSevenEighthsOfTheRate) {
  EXPECT_EQ(terms_.burst, 2000);
  EXPECT_EQ(terms_.refill * kSecond / terms_.period, 7000);
  EXPECT_EQ(terms_.term, 2 * kSecond);
}

TEST_F(RateShareTest, AShareBeginsEmptyAndFlowsInALittleMoreSlowlyThanItsRate) {
  Grant(kShareUnits / 10, 0, 0);
  EXPECT_EQ(Spend(0), 0);
  // 700 a second by the store's clock; the node's may run faster by a thousandth.
  EXPECT_EQ(Spend(kSecond / 10), 69);
  EXPECT_EQ(Spend(kSecond / 5), 70);
}

TEST_F(RateShareTest, AShareHoldsNoMoreThanItsPartOfTheBurst) {
  Grant(kShareUnits / 10, 0, 0);
  EXPECT_EQ(Spend(kSecond), 199) << "a tenth of 2,000 units that are not quite a tenth";
}

TEST_F(RateShareTest, NothingIsLeftOfAShareThatHasEnded) {
  Grant(kShareUnits / 10, 0, 0);
  EXPECT_FALSE(share_.Take(2 * kSecond, 1)) << "the clocks may run apart by a thousandth";
  EXPECT_FALSE(share_.active(2 * kSecond));
  Grant(kShareUnits / 10, 2 * kSecond, 2 * kSecond);
  EXPECT_EQ(Spend(2 * kSecond), 0);
}

TEST_F(RateShareTest, AShareThatFollowsInTimeKeepsWhatHasFlowedIn) {
  Grant(kShareUnits / 10, 0, 0);
  Grant(kShareUnits / 10, kSecond, kSecond);
  EXPECT_EQ(Spend(5 * kSecond / 2), 199);
}

TEST_F(RateShareTest, TheTermCountsFromTheQuestion) {
  Grant(kShareUnits, 0, kSecond);
  EXPECT_TRUE(share_.active(2 * kSecond - kSecond / 100));
  EXPECT_FALSE(share_.active(2 * kSecond));
  Grant(kShareUnits, 3 * kSecond, 6 * kSecond);
  EXPECT_FALSE(share_.active(6 * kSecond)) << "it came after its end";
}

TEST_F(RateShareTest, WhatIsHeldForACheckCountsAsHeld) {
  Grant(kShareUnits / 10, 0, 0);
  const std::uint64_t mark = share_.Hold(kSecond, 100);
  ASSERT_NE(mark, 0U);
  EXPECT_EQ(Spend(3 * kSecond / 2), 99) << "with what is held, its part of the burst";
  EXPECT_TRUE(share_.Lasts(3 * kSecond / 2, mark));
  share_.PutBack(3 * kSecond / 2, mark, 100);
  EXPECT_EQ(Spend(3 * kSecond / 2), 100);
}

TEST_F(RateShareTest, WhatIsHeldForACheckIsVoidOnceItsShareHasEnded) {
  Grant(kShareUnits / 10, 0, 0);
  const std::uint64_t mark = share_.Hold(kSecond, 100);
  ASSERT_NE(mark, 0U);
  Grant(kShareUnits, 5 * kSecond / 2, 5 * kSecond / 2);
  EXPECT_FALSE(share_.Lasts(3 * kSecond, mark)) << "there is room again, but there was none";
}

TEST_F(RateShareTest, AKeyThatIsAskedForOftenWantsAShare) {
  for (int i = 0; i < 7; ++i) share_.Note(i, 1);
  EXPECT_FALSE(share_.ShouldAsk(7));
  share_.Note(8, 1);
  EXPECT_TRUE(share_.ShouldAsk(8));
}

TEST_F(RateShareTest, AKeyThatWasRefusedWantsAShareHoweverFewChecksThereAre) {
  share_.Note(0, 1);
  share_.Refused(0);
  EXPECT_TRUE(share_.ShouldAsk(0));
}

TEST_F(RateShareTest, WhatAllWantBeyondTheWholeIsCutInProportion) {
  for (int i = 0; i < 1400; ++i) share_.Note(i * kSecond / 1400, 1);
  const RateShare::Question first = share_.Ask(kSecond - 1, kSecond);
  EXPECT_NEAR(static_cast<double>(first.want), 0.25 * kShareUnits, 0.01 * kShareUnits);
  EXPECT_EQ(first.more, (first.want + 1) / 2) << "grants overlap";
  share_.OnAnswer({.reserved = {}, .wants = 2 * kShareUnits, .sent = 0, .now = kSecond}, {});
  const RateShare::Question second = share_.Ask(kSecond, kSecond);
  EXPECT_NEAR(static_cast<double>(second.more), 0.25 * static_cast<double>(second.want), 2);
}

TEST_F(RateShareTest, TheOldestGrantGoesBackWithTheNextQuestion) {
  Grant(kShareUnits / 10, 0, 0);
  Grant(kShareUnits / 10, kSecond, kSecond);
  for (int i = 0; i < 7000; ++i) share_.Note(kSecond, 1);
  const RateShare::Question question = share_.Ask(kSecond, kSecond);
  EXPECT_EQ(question.ended.size(), 1U);
  EXPECT_EQ(question.keep, kShareUnits / 10) << "that much is free then";
  EXPECT_EQ(share_.units(), kShareUnits / 10);
  share_.Failed(kSecond);
  EXPECT_TRUE(share_.Ask(kSecond, kSecond).ended.empty()) << "the last one stays";
  share_.Failed(kSecond);
  EXPECT_EQ(share_.Ask(3 * kSecond - kSecond / 4, kSecond).ended.size(), 1U) << "until its end";
}

}  // namespace
}  // namespace weir::store::lease
