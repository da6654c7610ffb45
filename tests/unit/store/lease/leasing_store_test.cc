#include "store/lease/leasing_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "unit/store/lease/leasing_fixture.h"

namespace weir::store::lease {
namespace {

using namespace std::chrono_literals;

TEST_F(LeasingStoreTest, TheFirstChecksOfAKeyAreExact) {
  for (int i = 0; i < 7; ++i) {
    EXPECT_TRUE(Charge());
    EXPECT_FALSE(last_.estimated);
  }
  EXPECT_EQ(book_.applications[Op::kCharge], 7);
  EXPECT_EQ(book_.applications[Op::kLease], 0);
}

TEST_F(LeasingStoreTest, ABusyKeyIsDecidedWithoutTheStore) {
  Warm();
  const int asked = book_.applications[Op::kCharge];
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(Charge());
  EXPECT_EQ(book_.applications[Op::kCharge], asked);
  EXPECT_TRUE(last_.estimated);
  EXPECT_EQ(decision_.limit, terms_.quota.limit());
  EXPECT_LT(book_.applications[Op::kLease], 20);
}

// They share a place in the index of hot keys.
TEST_F(LeasingStoreTest, KeysThatEndAlikeAreKeptApart) {
  terms_ = *algorithm::TermsFor(*Quota::TokenBucket(100, 10));
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(Charge("a/user"));
    EXPECT_TRUE(Charge("b/user"));
  }
  for (int i = 0; i < 100; ++i) Charge("a/user");
  EXPECT_FALSE(Charge("a/user"));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Charge("b/user"));
  EXPECT_FALSE(Charge("a/user"));
}

TEST_F(LeasingStoreTest, AKeyThatWasForgottenIsWatchedAnew) {
  Warm();
  for (int i = 0; i < 12; ++i) {
    clock_.Advance(std::chrono::nanoseconds(terms_.term / 4));
    Ring();
  }
  ASSERT_FALSE(store_->Find("hot").leased);
  EXPECT_TRUE(Charge());
  EXPECT_FALSE(last_.estimated);
  Warm();
  EXPECT_TRUE(last_.estimated);
}

TEST_F(LeasingStoreTest, PermitsEndWithTheirTerm) {
  Warm();
  ASSERT_GT(metrics().held.load(), 0);
  book_.shut = true;
  clock_.Advance(std::chrono::nanoseconds(terms_.term));
  EXPECT_FALSE(Charge()) << "the clocks may run apart by a thousandth";
}

TEST_F(LeasingStoreTest, HeldPermitsOutlastTheStoreForAWhile) {
  Warm();
  book_.shut = true;
  clock_.Advance(std::chrono::nanoseconds(terms_.term * 9 / 10));
  EXPECT_TRUE(Charge());
}

TEST_F(LeasingStoreTest, WhatIsHeldGoesBackWhenNobodyAsks) {
  Warm();
  const std::int64_t held = metrics().held.load();
  ASSERT_GT(held, 0);
  clock_.Advance(std::chrono::nanoseconds(terms_.term / 4 + 1));
  Ring();
  EXPECT_GE(book_.applications[Op::kReturn], 1);
  EXPECT_EQ(metrics().held.load(), 0);
}

TEST_F(LeasingStoreTest, DrainGivesEverythingBackAndTakesNoMore) {
  Warm();
  const std::int64_t before = Remaining();
  const std::int64_t held = metrics().held.load();
  store_->Drain();
  EXPECT_EQ(Remaining(), before + held);
  for (int i = 0; i < 50; ++i) Charge();
  EXPECT_FALSE(last_.estimated);
}

TEST_F(LeasingStoreTest, ChargesBesideAnExactOneAreAllOrNone) {
  const Quota exact = *Quota::FixedWindow(1, 1h);
  Warm();
  // More may be requested and granted in the meantime.
  const auto unspent = [this] {
    return metrics().held.load() - static_cast<std::int64_t>(metrics().granted.value());
  };
  const std::int64_t before = unspent();
  const store::Charge hot{"hot", 1, &terms_.quota};
  const store::Charge other{"other", 1, &exact};
  EXPECT_TRUE(ChargeAll({hot, other}, {&terms_, nullptr}));
  EXPECT_EQ(unspent(), before - 1);
  EXPECT_FALSE(ChargeAll({hot, other}, {&terms_, nullptr}));
  EXPECT_EQ(unspent(), before - 1) << "nothing is spent on what was refused";
}

TEST_F(LeasingStoreTest, AnotherQuotaGivesTheOldLeaseBack) {
  Warm();
  terms_ = *algorithm::TermsFor(*Quota::TokenBucket(2000, 100));
  EXPECT_TRUE(Charge());
  EXPECT_GE(book_.applications[Op::kReturn], 1);
}

TEST_F(LeasingStoreTest, AResetForgetsWhatIsHeld) {
  Warm();
  Application reset;
  reset.op = Op::kReset;
  const store::Charge charge{"hot", 0, &terms_.quota};
  Decision decision;
  reset.charges = {&charge, 1};
  reset.decisions = {&decision, 1};
  store_->Apply({&reset, 1}, [] {});
  EXPECT_EQ(metrics().held.load(), 0);
  EXPECT_EQ(Remaining(), terms_.quota.limit());
}

TEST_F(LeasingStoreTest, ARefundPutsBackWhatThisNodeSpent) {
  Warm();
  const std::int64_t held = metrics().held.load();
  EXPECT_TRUE(Charge());
  Refund({{"hot", 1, &terms_.quota}}, {&terms_});
  EXPECT_EQ(metrics().held.load(), held);
  EXPECT_EQ(book_.applications[Op::kRefund], 0);
}

// In a window that has just begun, everything the store counts may be permits held by nodes.
TEST_F(LeasingStoreTest, ARefundFreesNothingThatIsHeldElsewhere) {
  terms_ = *algorithm::TermsFor(*Quota::FixedWindow(100, 10s));
  ASSERT_EQ(engine_.Lease("hot", terms_.quota, 40).granted, 40) << "another node's";
  Refund({{"hot", 10, &terms_.quota}}, {&terms_});
  EXPECT_EQ(Remaining(), 60);
}

// A client retries a failed refund.
TEST_F(LeasingStoreTest, ARefundThatTheStoreDidNotAnswerGivesNothingBackHere) {
  Warm();
  const Quota exact = *Quota::FixedWindow(100, 1h);
  const std::int64_t held = metrics().held.load();
  book_.shut = true;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(Refund({{"hot", 1, &terms_.quota}, {"other", 1, &exact}}, {&terms_, nullptr}));
  }
  EXPECT_EQ(metrics().held.load(), held);
  book_.shut = false;
  EXPECT_TRUE(Refund({{"hot", 1, &terms_.quota}, {"other", 1, &exact}}, {&terms_, nullptr}));
  EXPECT_EQ(metrics().held.load(), held + 1);
  EXPECT_EQ(decision_.limit, terms_.quota.limit());
}

TEST_F(LeasingStoreTest, ARefundOfSeveralPoliciesGivesBackOnlyTheExactOnesInTheStore) {
  const Quota exact = *Quota::FixedWindow(10, 1h);
  ASSERT_TRUE(ChargeAll({{"hot", 5, &terms_.quota}, {"other", 5, &exact}}, {&terms_, nullptr}));
  const std::int64_t left = Remaining();
  Refund({{"hot", 5, &terms_.quota}, {"other", 5, &exact}}, {&terms_, nullptr});
  EXPECT_TRUE(last_.applied);
  EXPECT_EQ(Remaining(), left) << "a full refund of a bucket gives back what has flowed in";
  EXPECT_EQ(engine_.Peek("other", exact, 1).remaining, 10);
}

class SharingTest : public LeasingStoreTest {
 protected:
  SharingTest() { terms_ = *algorithm::RateTermsFor(*Quota::TokenBucket(8000, 8000)); }

  /// 1,000 checks a second, for `milliseconds`.
  int Busy(int milliseconds) {
    int admitted = 0;
    for (int i = 0; i < milliseconds; ++i) {
      clock_.Advance(1ms);
      admitted += Charge() ? 1 : 0;
    }
    return admitted;
  }
  std::int64_t FreeUnits() {
    return engine_.Peek("hot|%share", UnitsQuota(terms_.rate), 0).remaining;
  }
};

TEST_F(SharingTest, ABusyKeyLivesOnItsShareOfTheRate) {
  Busy(3000);
  const int before = book_.applications[Op::kLease] + book_.applications[Op::kCharge];
  EXPECT_EQ(Busy(5000), 5000);
  EXPECT_NEAR(static_cast<double>(metrics().share_asks.value()), 10, 2) << "about one a second";
  EXPECT_LT(book_.applications[Op::kLease] + book_.applications[Op::kCharge] - before, 20);
  EXPECT_GT(metrics().share_spent.value(), 6000U);
}

TEST_F(SharingTest, UnitsGoBackWhenNobodyAsksAndWhenTheNodeDrains) {
  Busy(500);
  EXPECT_LT(FreeUnits(), algorithm::kShareUnits);
  clock_.Advance(1001ms);
  Ring();
  EXPECT_EQ(FreeUnits(), algorithm::kShareUnits);
  Busy(500);
  EXPECT_LT(FreeUnits(), algorithm::kShareUnits);
  store_->Drain();
  EXPECT_EQ(FreeUnits(), algorithm::kShareUnits);
}

TEST_F(SharingTest, AShareBesideAnExactPolicyIsSpentOnlyIfBothAllow) {
  Busy(3000);
  const Quota exact = *Quota::FixedWindow(1, 1h);
  const store::Charge hot{"hot", 1, &terms_.quota};
  const store::Charge other{"other", 1, &exact};
  const std::uint64_t before = metrics().share_spent.value();
  EXPECT_TRUE(ChargeAll({hot, other}, {&terms_, nullptr}));
  EXPECT_FALSE(ChargeAll({hot, other}, {&terms_, nullptr}));
  EXPECT_EQ(metrics().share_spent.value(), before + 1);
}

TEST_F(SharingTest, AShareOutlastsTheStoreForItsTerm) {
  Busy(3000);
  book_.shut = true;
  EXPECT_GT(Busy(900), 600);
  EXPECT_LT(Busy(3000), 1500);
  EXPECT_FALSE(Charge());
}

TEST_F(LeasingStoreTest, KeysBeyondTheBoundAreChargedExactly) {
  for (int key = 0; key < 10; ++key) Charge(std::to_string(key));
  for (int i = 0; i < 50; ++i) Charge("one more");
  EXPECT_EQ(book_.applications[Op::kLease], 0);
}

}  // namespace
}  // namespace weir::store::lease
