#include "store/lease/holding.h"

#include <gtest/gtest.h>

namespace weir::store::lease {
namespace {

const algorithm::LeaseTerms kTerms = *algorithm::TermsFor(*Quota::TokenBucket(1000, 100));

void Grant(Holding& holding, std::uint64_t id, std::int64_t count, Nanos now) {
  holding.OnGrant({.grant = {count, now, {}}, .id = id, .want = count, .sent = now, .now = now},
                  {});
}

// Permits that end must not survive in a later grant: they were charged too long ago.
TEST(Holding, WhatWasNotUsedGoesBackToItsOwnGrantOnly) {
  Holding holding(kTerms, 0);
  Grant(holding, 1, 10, 0);
  std::vector<Taken> first;
  ASSERT_TRUE(holding.Take(0, 5, 0, 0, first));
  const Nanos late = kTerms.term / 2;
  Grant(holding, 2, 10, late);
  std::vector<Taken> rest;
  ASSERT_TRUE(holding.Take(late, 15, 0, 0, rest));
  ASSERT_EQ(rest.size(), 2U);
  ASSERT_EQ(holding.held(), 0);
  EXPECT_EQ(holding.PutBack(kTerms.term, first.front()), 0) << "its grant has ended";
  EXPECT_EQ(holding.held(), 0);
  EXPECT_EQ(holding.PutBack(kTerms.term, rest.back()), 10);
  EXPECT_EQ(holding.held(), 10);
}

TEST(Holding, OneCheckMaySpendSeveralGrantsTheOldestFirst) {
  Holding holding(kTerms, 0);
  Grant(holding, 1, 10, 0);
  const Nanos late = kTerms.term / 2;
  Grant(holding, 2, 10, late);
  ASSERT_TRUE(holding.Take(late, 12));
  EXPECT_EQ(holding.held(), 8);
  EXPECT_FALSE(holding.Take(late, 9));
  EXPECT_EQ(holding.held(), 8) << "nothing is spent on what was refused";
  EXPECT_EQ(holding.Expire(kTerms.term), 0) << "of the first grant";
  ASSERT_TRUE(holding.Take(kTerms.term, 8));
  EXPECT_EQ(holding.Refund(kTerms.term, 100), 10) << "the first grant has ended";
}

TEST(Holding, WhatHasEndedIsNotSpent) {
  Holding holding(kTerms, 0);
  Grant(holding, 1, 10, 0);
  ASSERT_EQ(holding.held(), 10);
  EXPECT_FALSE(holding.Take(kTerms.term, 1));
  EXPECT_EQ(holding.held(), 10);
}

TEST(Holding, NothingGoesBackToAGrantThatWasGivenBack) {
  Holding holding(kTerms, 0);
  Grant(holding, 1, 10, 0);
  std::vector<Taken> taken;
  ASSERT_TRUE(holding.Take(0, 10, 0, 0, taken));
  ASSERT_EQ(holding.Surrender().size(), 1U);
  Grant(holding, 2, 10, 1);
  std::vector<Taken> spent;
  ASSERT_TRUE(holding.Take(1, 10, 0, 0, spent));
  EXPECT_EQ(holding.PutBack(1, taken.front()), 0);
}

TEST(Holding, ARefundIsNeverMoreThanWasSpent) {
  Holding holding(kTerms, 0);
  Grant(holding, 1, 10, 0);
  std::vector<Taken> taken;
  ASSERT_TRUE(holding.Take(0, 4, 0, 0, taken));
  EXPECT_EQ(holding.Refund(0, 100), 4);
  EXPECT_EQ(holding.held(), 10);
}

TEST(Holding, WhatIsHeldForACheckIsSpentOnceItIsAdmitted) {
  Holding holding(kTerms, 0);
  Grant(holding, 1, 10, 0);
  std::vector<Taken> taken;
  ASSERT_TRUE(holding.Hold(0, 4, 0, 0, taken));
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(holding.held(), 6);
  EXPECT_EQ(holding.Refund(0, 100), 0) << "nothing was admitted yet";
  holding.Spend(taken.front());
  EXPECT_EQ(holding.Refund(0, 100), 4);
  EXPECT_EQ(holding.PutBack(0, taken.front()), 0) << "no more than was held";
  EXPECT_EQ(holding.held(), 10);
  EXPECT_FALSE(holding.Hold(0, 11, 0, 0, taken));
  holding.Surrender();
  holding.Spend(taken.front());
  EXPECT_EQ(holding.Refund(0, 100), 0) << "its grant is gone";
}

}  // namespace
}  // namespace weir::store::lease
