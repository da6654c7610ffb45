// What happens to held permits when keys, policies or the store itself are removed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "telemetry/metrics.h"
#include "unit/store/lease/slow_store.h"

namespace weir::store::lease {
namespace {

using namespace std::chrono_literals;
using test::Asked;
using test::LeasingAnswers;
using ::testing::HasSubstr;

TEST_F(LeasingAnswers, PermitsThatComeAfterADrainGoBack) {
  AskForPermits();
  store_->Drain();
  const std::int64_t before = LeftInStore();
  AnswerHeld();
  EXPECT_EQ(book_.applications[Op::kReturn], 1);
  EXPECT_EQ(LeftInStore(), before) << "all that was taken";
  EXPECT_EQ(metrics().held.load(), 0);
}

TEST_F(LeasingAnswers, PermitsOfAQuotaThatHasChangedMeanwhileGoBack) {
  AskForPermits();
  terms_ = *algorithm::TermsFor(*Quota::TokenBucket(2000, 100));
  EXPECT_TRUE(ChargeHot());
  AnswerHeld();
  EXPECT_EQ(book_.applications[Op::kReturn], 1);
  EXPECT_EQ(metrics().held.load(), 0);
}

TEST_F(LeasingAnswers, PermitsThatComeTooLateGoBackAndTheStoreDecidesForAWhile) {
  AskForPermits();
  clock_.Advance(term());
  const std::int64_t before = LeftInStore();
  AnswerHeld();
  EXPECT_EQ(book_.applications[Op::kReturn], 1);
  EXPECT_EQ(LeftInStore(), before) << "all that was taken";
  EXPECT_EQ(metrics().held.load(), 0);
  EXPECT_EQ(metrics().lost.value(), 0U);
  EXPECT_TRUE(ChargeHot());
  EXPECT_FALSE(estimated_);
  EXPECT_EQ(book_.applications[Op::kLease], 1) << "not asked again at once";
}

// The permits would end before the store has answered for the other charge, so that the check would
// be denied. The store took 4/10 of the term, so they have to last for 8/10, and have 6/10 left.
TEST_F(LeasingAnswers, AChargeBesideOneThatASlowStoreDecidesGoesThereToo) {
  AskForPermits();
  clock_.Advance(term() * 4 / 10);
  AnswerHeld();
  ASSERT_GT(metrics().held.load(), 0);
  book_.hold = true;
  Asked asked(Op::kCharge, {Hot(), {"exact", 1, &exact_}}, {&terms_, nullptr});
  On(asked);
  EXPECT_EQ(metrics().held.load(), 0) << "of no use to such checks";
  clock_.Advance(term() * 9 / 10);
  AnswerHeld();
  EXPECT_TRUE(asked.admitted());
  EXPECT_EQ(book_.applications[Op::kReturn], 1);
}

TEST_F(LeasingAnswers, PermitsThatComeWhileItGoesAwayAreLost) {
  AskForPermits();
  store_->Drain();
  book_.answer_at_end = true;
  store_.reset();
  EXPECT_TRUE(book_.held.empty());
  EXPECT_EQ(book_.applications[Op::kReturn], 0) << "there is no store to give them to";
}

TEST_F(LeasingAnswers, WhoeverAsksAgainWhileItGoesAwayIsAnswered) {
  Asked first(Op::kCharge, {{"exact", 1, &exact_}}, {nullptr});
  Asked second(Op::kCharge, {{"exact", 1, &exact_}}, {nullptr});
  book_.hold = book_.answer_at_end = true;
  LeasingStore* const going = store_.get();
  going->Apply({&first.application, 1}, [&] {
    going->Apply({&second.application, 1}, [&second] { second.told = true; });
  });
  store_.reset();
  EXPECT_TRUE(second.told);
  EXPECT_FALSE(second.admitted());
}

TEST_F(LeasingAnswers, AnAnswerAfterItsEndIsDropped) {
  AskForPermits();
  store_.reset();
  AnswerHeld();
  EXPECT_EQ(metrics().held.load(), 0);
  EXPECT_EQ(metrics().granted.value(), 0U);
}

TEST_F(LeasingAnswers, AQuestionThatFailedIsAskedAgainHalfATermLater) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(ChargeHot());
  book_.shut = true;
  EXPECT_FALSE(ChargeHot());
  EXPECT_EQ(book_.applications[Op::kLease], 1);
  book_.shut = false;
  EXPECT_TRUE(ChargeHot());
  EXPECT_EQ(book_.applications[Op::kLease], 1) << "not yet";
  clock_.Advance(term() / 2);
  EXPECT_TRUE(ChargeHot());
  EXPECT_EQ(book_.applications[Op::kLease], 2);
}

TEST_F(LeasingAnswers, AQuestionThatFailedForAKeyThatIsGoneIsForgotten) {
  AskForPermits();
  store_->Drain();
  for (test::Held& held : std::exchange(book_.held, {})) {
    held.batch[0].status = Error{Code::kUnavailable, "shut"};
    held.done();
  }
  EXPECT_EQ(metrics().granted.value(), 0U);
  EXPECT_EQ(book_.applications[Op::kReturn], 0);
}

TEST_F(LeasingAnswers, OnlyWhatIsLeftAndStillLastsIsGivenBack) {
  Warm();
  clock_.Advance(term());
  store_->Drain();
  EXPECT_EQ(book_.applications[Op::kReturn], 0) << "it has ended";
}

TEST_F(LeasingAnswers, WhatIsSpentIsNotGivenBack) {
  Warm();
  book_.shut = true;  // so that no more is granted
  while (metrics().held.load() > 0) ASSERT_TRUE(ChargeHot());
  book_.shut = false;
  store_->Drain();
  EXPECT_EQ(book_.applications[Op::kReturn], 0);
}

TEST_F(LeasingAnswers, AResetOfAKeyThatNobodyWatchesIsPassedOn) {
  Asked reset(Op::kReset, {{"cold", 0, &exact_}}, {});
  On(reset);
  EXPECT_TRUE(reset.told);
  EXPECT_EQ(book_.applications[Op::kReset], 1);
}

TEST_F(LeasingAnswers, KeysThatNobodyAsksForAreForgotten) {
  Warm();
  Ring();
  EXPECT_EQ(metrics().keys.load(), 1U);
  clock_.Advance(2 * term() + 1ms);
  Ring();
  EXPECT_EQ(metrics().keys.load(), 0U);
  EXPECT_EQ(metrics().held.load(), 0);
  EXPECT_GT(metrics().lost.value(), 0U) << "they ended unspent";
  EXPECT_TRUE(timers_.empty()) << "there is nothing left to watch";
}

// Three checks in half a term: too few to lease permits in advance.
TEST_F(LeasingAnswers, AKeyThatIsNoLongerBusyIsChargedExactly) {
  Warm();
  for (int i = 0; i < 8; ++i) {
    clock_.Advance(term() / 6);
    EXPECT_TRUE(ChargeHot());
    Ring();
  }
  EXPECT_FALSE(estimated_);
  EXPECT_EQ(metrics().keys.load(), 0U);
  EXPECT_EQ(metrics().held.load(), 0);
}

TEST_F(LeasingAnswers, WhatReactorsHoldIsSummedUp) {
  Warm();
  const std::shared_ptr<LeaseMetrics> other = leases_.AddMetrics();
  other->keys = 2;
  other->held = 30;
  other->local.Add(7);
  other->asks.Add(3);
  other->share_asks.Add(1);
  other->granted.Add(40);
  other->lost.Add(5);
  other->sharing = 1;
  Ring();
  const Leases::Totals totals = leases_.Sum();
  EXPECT_EQ(totals.keys, 3U);
  EXPECT_EQ(totals.held, 30 + metrics().held.load());
  EXPECT_EQ(totals.local, 7 + metrics().local.value());
  EXPECT_EQ(totals.asks, 4 + metrics().asks.value());
  EXPECT_EQ(totals.granted, 40 + metrics().granted.value());
  EXPECT_EQ(totals.lost, 5U);
  std::string text;
  telemetry::TextWriter out(text);
  leases_.Collect(out);
  EXPECT_THAT(text, HasSubstr("\nweir_lease_keys 3\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_lease_share_keys 1\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_lease_permits_held " + std::to_string(totals.held) + "\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_lease_permits_lost_total 5\n"));
}

TEST_F(LeasingAnswers, ARefundOfAKeyThatNobodyWatchesStaysSpent) {
  ASSERT_TRUE(engine_.TryAcquire("hot", terms_.quota, 10).allowed());
  const std::int64_t left = LeftInStore();
  Asked refund(Op::kRefund, {Hot(10)}, {&terms_});
  On(refund);
  EXPECT_TRUE(refund.admitted());
  EXPECT_EQ(LeftInStore(), left);
  EXPECT_EQ(refund.decisions[0].limit, terms_.quota.limit());
}

// Each flaw that a simulation must find has the effect that its name says.
TEST_F(LeasingAnswers, WithTheFlawARefundFreesWhatOthersHold) {
  Leases flawed(LeaseOptions{.clock = &clock_, .seed = 1, .flaws = {.refund_in_store = true}});
  store_ = std::make_unique<LeasingStore>(std::make_unique<test::ManualTimers>(timers_), flawed,
                                          std::make_unique<test::SlowStore>(engine_, book_));
  ASSERT_TRUE(engine_.TryAcquire("hot", terms_.quota, 10).allowed());
  const std::int64_t left = LeftInStore();
  Asked refund(Op::kRefund, {Hot(10)}, {&terms_});
  On(refund);
  EXPECT_EQ(LeftInStore(), left + 10);
  store_.reset();  // before what it was made of
}

}  // namespace
}  // namespace weir::store::lease
