// A leasing store whose store answers later, or not at all.

#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unit/store/lease/slow_store.h"

namespace weir::store::lease {
namespace {

using namespace std::chrono_literals;
using test::Asked;
using test::LeasingAnswers;

TEST_F(LeasingAnswers, WhatIsNotLeasedIsPassedOn) {
  Asked plain(Op::kCharge, {{"other", 1, &exact_}}, {});
  On(plain);
  EXPECT_TRUE(plain.admitted());
  EXPECT_FALSE(plain.application.estimated);
  // Together with a leased one, in one batch.
  Asked leased(Op::kCharge, {Hot()}, {&terms_});
  std::vector<Application> batch = {plain.application, leased.application};
  int told = 0;
  store_->Apply(batch, [&told] { ++told; });
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(batch[0].applied);
  EXPECT_TRUE(batch[1].applied);
  EXPECT_EQ(plain.decisions[0].remaining, 3);
}

TEST_F(LeasingAnswers, ACheckDoesNotWaitUntilMoreIsAskedFor) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(ChargeHot());
  std::list<Asked> asked;
  std::vector<Application> batch;
  for (int i = 0; i < 3; ++i) {
    batch.push_back(asked
                        .emplace_back(Op::kCharge, std::vector<Charge>{Hot()},
                                      std::vector<const algorithm::LeaseTerms*>{&terms_})
                        .application);
  }
  bool told = false;
  store_->Apply(batch, [&told] { told = true; });
  EXPECT_TRUE(told);
  EXPECT_EQ(book_.applications[Op::kLease], 0) << "not before they are answered";
  timers_.RunSoon();
  EXPECT_EQ(book_.applications[Op::kLease], 1) << "once for all of them";
  EXPECT_GT(metrics().held.load(), 0);
}

TEST_F(LeasingAnswers, WhatIsDueWhenAKeyIsGoneIsNotAskedFor) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(ChargeHot());
  Asked last(Op::kCharge, {Hot()}, {&terms_});
  store_->Apply({&last.application, 1}, [] {});
  store_->Drain();
  timers_.RunSoon();
  EXPECT_EQ(book_.applications[Op::kLease], 0);
}

TEST_F(LeasingAnswers, LooksAndChargesOfNothingAreAskedOfTheStore) {
  Warm();
  const int peeks = book_.applications[Op::kPeek];
  Asked look(Op::kPeek, {Hot()}, {&terms_});
  On(look);
  EXPECT_EQ(book_.applications[Op::kPeek], peeks + 1);
  const int charges = book_.applications[Op::kCharge];
  EXPECT_TRUE(ChargeHot(0));
  EXPECT_EQ(book_.applications[Op::kCharge], charges + 1);
  EXPECT_FALSE(estimated_);
}

TEST_F(LeasingAnswers, ABusyKeyOfWhichThereIsNothingLeftIsRefusedHere) {
  Warm();
  // Another node takes all remaining permits.
  ASSERT_TRUE(engine_.TryAcquire("hot", terms_.quota, LeftInStore()).allowed());
  while (ChargeHot()) {
  }
  const int asked = book_.applications[Op::kCharge];
  EXPECT_FALSE(ChargeHot());
  EXPECT_TRUE(estimated_);
  EXPECT_EQ(decision_.verdict, Verdict::kLimited);
  EXPECT_GT(decision_.retry_after, 0ns);
  EXPECT_EQ(book_.applications[Op::kCharge], asked);
  EXPECT_GE(metrics().refused.value(), 1U);
  // Together with an exact policy the store decides.
  Asked both(Op::kCharge, {Hot(), {"other", 1, &exact_}}, {&terms_, nullptr});
  On(both);
  EXPECT_FALSE(both.admitted());
  EXPECT_EQ(engine_.Peek("other", exact_, 0).remaining, 5);
}

TEST_F(LeasingAnswers, LeasedAndExactChargesOfOneCheckAreToldApart) {
  Warm();
  for (int i = 0; i < 12; ++i) {
    Asked second(Op::kCharge, {{"warm", 1, &terms_.quota}}, {&terms_});
    On(second);
    ASSERT_TRUE(second.admitted());
  }
  const std::int64_t hot = LeftInStore();
  Asked mixed(Op::kCharge, {Hot(), {"other", 2, &exact_}, {"warm", 1, &terms_.quota}},
              {&terms_, nullptr, &terms_});
  On(mixed);
  EXPECT_TRUE(mixed.admitted());
  EXPECT_EQ(mixed.decisions[1].limit, 5);
  EXPECT_EQ(mixed.decisions[1].remaining, 3);
  EXPECT_EQ(mixed.decisions[0].limit, terms_.quota.limit());
  EXPECT_LE(LeftInStore(), hot) << "it was charged when its permits were taken";
}

TEST_F(LeasingAnswers, AnAnswerThatComesAfterTheLeaseEndedAdmitsNothing) {
  Warm();
  book_.hold = true;
  Asked slow(Op::kCharge, {Hot(), {"other", 1, &exact_}}, {&terms_, nullptr});
  On(slow);
  EXPECT_FALSE(slow.told);
  clock_.Advance(term());
  AnswerHeld();
  ASSERT_TRUE(slow.told);
  EXPECT_FALSE(slow.application.applied);
  ASSERT_FALSE(slow.application.status.ok());
  EXPECT_EQ(FaultOf(slow.application.status.error().code), Fault::kQuestion)
      << "no share of the quota is added to what the store has decided";
}

TEST_F(LeasingAnswers, PermitsInFlightThatComeAfterTheLeaseEndedAreReleased) {
  const Quota jobs = *Quota::Concurrency(5, std::chrono::hours(1));
  Warm();
  book_.hold = true;
  Asked slow(Op::kCharge, {Hot(), {"jobs", 2, &jobs}}, {&terms_, nullptr});
  On(slow);
  clock_.Advance(term());
  AnswerHeld();
  AnswerHeld();
  EXPECT_FALSE(slow.application.applied);
  EXPECT_EQ(slow.decisions[1].lease, 0);
  EXPECT_EQ(engine_.Peek("jobs", jobs, 0).remaining, 5);
}

TEST_F(LeasingAnswers, WhatTheStoreCouldNotDecideHasSpentNothing) {
  Warm();
  const std::int64_t held = metrics().held.load();
  book_.shut = true;
  Asked failed(Op::kCharge, {Hot(), {"other", 1, &exact_}}, {&terms_, nullptr});
  On(failed);
  ASSERT_TRUE(failed.told);
  EXPECT_EQ(failed.application.status.error().code, Code::kUnavailable);
  EXPECT_EQ(metrics().held.load(), held);
}

// A client refunds an earlier check while this one waits for the store: what this one took is
// not spent yet, and is added if it is admitted.
TEST_F(LeasingAnswers, ARefundFreesNothingThatACheckNotDecidedYetHasTaken) {
  Warm();
  const auto spent = static_cast<std::int64_t>(metrics().spent.value());
  const std::int64_t held = metrics().held.load();
  book_.hold = true;
  Asked slow(Op::kCharge, {Hot(held), {"other", 1, &exact_}}, {&terms_, nullptr});
  On(slow);
  ASSERT_EQ(metrics().held.load(), 0);
  book_.hold = false;
  Asked refund(Op::kRefund, {Hot(1000)}, {&terms_});
  On(refund);
  EXPECT_EQ(metrics().held.load(), spent) << "all that was admitted of the grant, and no more";
  AnswerHeldCharges();
  EXPECT_TRUE(slow.admitted());
  EXPECT_EQ(metrics().held.load(), spent);
  // Now it is spent, and may be refunded like any other.
  Asked late(Op::kRefund, {Hot(1000)}, {&terms_});
  On(late);
  EXPECT_EQ(metrics().held.load(), spent + held);
  AnswerHeld();  // also the request for more, which was sent with the first check
}

TEST_F(LeasingAnswers, ADrainWhileTheStoreThinksLosesNoAnswer) {
  Warm();
  book_.hold = true;
  Asked slow(Op::kCharge, {Hot(), {"other", 1, &exact_}}, {&terms_, nullptr});
  Asked refused(Op::kCharge, {Hot(), {"other", 6, &exact_}}, {&terms_, nullptr});
  On(slow);
  On(refused);
  store_->Drain();
  book_.hold = false;
  AnswerHeld();
  EXPECT_TRUE(slow.admitted());
  EXPECT_TRUE(refused.told);
  EXPECT_FALSE(refused.application.applied) << "and there is nobody to put its permit back to";
  EXPECT_EQ(metrics().held.load(), 0);
  const int returns = book_.applications[Op::kReturn];
  store_->Drain();
  EXPECT_EQ(book_.applications[Op::kReturn], returns) << "there is nothing left to give back";
}

TEST_F(LeasingAnswers, WhoeverWaitsWhenItGoesAwayIsTold) {
  Warm();
  book_.hold = true;
  Asked slow(Op::kCharge, {{"other", 1, &exact_}, Hot(500)}, {nullptr, &terms_});
  On(slow);
  ASSERT_FALSE(slow.told);
  store_.reset();
  AnswerHeld();
  ASSERT_TRUE(slow.told);
  ASSERT_FALSE(slow.application.status.ok());
  EXPECT_EQ(slow.application.status.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace weir::store::lease
