// Permits of concurrency quotas that a LeasingStore keeps in stock.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>

#include "unit/store/lease/leasing_fixture.h"

namespace weir::store::lease {
namespace {

using namespace std::chrono_literals;

class LeasingPermitsTest : public LeasingStoreTest {
 protected:
  static constexpr std::int64_t kLimit = 320;
  static constexpr std::int64_t kStock = kLimit / 16;

  LeasingPermitsTest() { terms_ = *algorithm::TermsFor(*Quota::Concurrency(kLimit, 10s)); }

  /// The id of the permit that a check got; 0: it was denied.
  std::int64_t Acquire() { return Charge() ? decision_.lease : 0; }
  bool Release(std::int64_t name) {
    const store::Charge charge{"hot", 1, &terms_.quota};
    const algorithm::LeaseTerms* terms = &terms_;
    Decision decision;
    Application application;
    application.op = Op::kRelease;
    application.lease = name;
    application.charges = {&charge, 1};
    application.decisions = {&decision, 1};
    application.terms = {&terms, 1};
    store_->Apply({&application, 1}, [] {});
    return application.applied;
  }
  std::int64_t InStore() { return kLimit - Remaining(); }
  std::int64_t Held() { return metrics().held.load(); }
};

TEST_F(LeasingPermitsTest, ABusyKeyIsGivenPermitsFromStock) {
  Warm();
  const int asked = book_.applications[Op::kCharge];
  std::set<std::int64_t> names;
  for (int i = 0; i < 200; ++i) {
    const std::int64_t name = Acquire();
    EXPECT_NE(name, 0);
    EXPECT_TRUE(last_.estimated);
    EXPECT_TRUE(names.insert(name).second) << "every permit has its own name";
    EXPECT_TRUE(Release(name));
    EXPECT_FALSE(Release(name)) << "once only";
  }
  EXPECT_EQ(book_.applications[Op::kCharge], asked);
  EXPECT_LE(metrics().asks.value(), 20U);
  EXPECT_EQ(metrics().spent.value(), 200U + 12U - static_cast<std::uint64_t>(asked));
}

TEST_F(LeasingPermitsTest, WhatIsInFlightAndInStockNeverExceedsTheLimit) {
  std::int64_t admitted = 0;
  for (int i = 0; i < 2 * kLimit; ++i) {
    if (Acquire() != 0) ++admitted;
    EXPECT_EQ(InStore(), admitted + Held());
  }
  EXPECT_EQ(admitted, kLimit) << "no permit is left unused while somebody waits for one";
  EXPECT_FALSE(last_.estimated) << "the store has the last word";
}

TEST_F(LeasingPermitsTest, OneNodeKeepsASmallPartOfTheLimit) {
  for (int i = 0; i < kLimit / 2; ++i) {
    Acquire();
    EXPECT_LE(Held(), kStock + kStock / 4);
  }
  EXPECT_GT(Held(), 0);
}

TEST_F(LeasingPermitsTest, StockGoesBackWhenNobodyAsks) {
  Warm();
  EXPECT_GT(Held(), 0);
  clock_.Advance(63ms);
  Ring();
  EXPECT_EQ(Held(), 0);
  EXPECT_EQ(InStore(), 12) << "the permits of clients stay";
}

TEST_F(LeasingPermitsTest, StockGoesBackWhenTheNodeDrains) {
  Warm();
  store_->Drain();
  EXPECT_EQ(Held(), 0);
  EXPECT_EQ(InStore(), 12);
  EXPECT_NE(Acquire(), 0);
  EXPECT_FALSE(last_.estimated);
}

TEST_F(LeasingPermitsTest, StockGoesBackWhenThePolicyChanges) {
  Warm();
  terms_ = *algorithm::TermsFor(*Quota::Concurrency(kLimit, 20s));
  EXPECT_NE(Acquire(), 0);
  EXPECT_FALSE(last_.estimated) << "a permit of the old policy would end too early";
  EXPECT_EQ(InStore(), 13 + Held());
}

TEST_F(LeasingPermitsTest, NothingIsHandedOutAfterItsTerm) {
  Warm();
  book_.shut = true;
  clock_.Advance(250ms);
  EXPECT_EQ(Acquire(), 0) << "of 250 ms by the store's clock, a thousandth is not certain";
}

TEST_F(LeasingPermitsTest, WhatIsHandedOutLastIsCountedForItsWholeLease) {
  Warm();
  for (int i = 0; i < 12; ++i) {
    clock_.Advance(20ms);
    EXPECT_NE(Acquire(), 0);
  }
  EXPECT_TRUE(last_.estimated);
  store_->Drain();
  clock_.Advance(10s - 1ns);
  EXPECT_GE(InStore(), 1) << "it was admitted less than its lease ago";
  clock_.Advance(251ms);
  EXPECT_EQ(InStore(), 0);
}

TEST_F(LeasingPermitsTest, APermitBesideAnExactPolicyIsSpentOnlyIfBothAllow) {
  Warm();
  const Quota exact = *Quota::FixedWindow(1, 1h);
  const store::Charge hot{"hot", 1, &terms_.quota};
  const store::Charge other{"other", 1, &exact};
  EXPECT_TRUE(ChargeAll({hot, other}, {&terms_, nullptr}));
  EXPECT_NE(decision_.lease, 0);
  const std::uint64_t spent = metrics().spent.value();
  const std::int64_t in_flight = InStore() - Held();
  EXPECT_FALSE(ChargeAll({hot, other}, {&terms_, nullptr}));
  EXPECT_EQ(decision_.lease, 0);
  EXPECT_EQ(metrics().spent.value(), spent);
  EXPECT_EQ(InStore() - Held(), in_flight);
}

TEST_F(LeasingPermitsTest, SeveralPermitsAtOnceAreChargedInTheStore) {
  Warm();
  EXPECT_TRUE(Charge("hot", 3));
  EXPECT_FALSE(last_.estimated);
  EXPECT_TRUE(Release(decision_.lease));
}

// It would free the newest permits, which may be in the stock of another node.
TEST_F(LeasingPermitsTest, ARefundFreesNothing) {
  Warm();
  const std::int64_t before = InStore();
  Refund({{"hot", 5, &terms_.quota}}, {&terms_});
  EXPECT_EQ(InStore(), before);
}

TEST_F(LeasingPermitsTest, AResetForgetsTheStock) {
  Warm();
  Application reset;
  reset.op = Op::kReset;
  const store::Charge charge{"hot", 0, &terms_.quota};
  Decision decision;
  reset.charges = {&charge, 1};
  reset.decisions = {&decision, 1};
  store_->Apply({&reset, 1}, [] {});
  EXPECT_EQ(Held(), 0);
}

}  // namespace
}  // namespace weir::store::lease
