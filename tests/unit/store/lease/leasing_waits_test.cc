// Checks that wait for requested permits instead of going to the store themselves.

#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "unit/store/lease/slow_store.h"

namespace weir::store::lease {
namespace {

using namespace std::chrono_literals;
using test::Asked;
using test::Held;

class LeasingWaits : public test::LeasingAnswers {
 protected:
  ~LeasingWaits() override {
    store_.reset();  // before the objects that it may notify
    AnswerHeld();
  }

  Asked& Ask(std::int64_t cost = 1) {
    Asked& asked = asked_.emplace_back(Op::kCharge, std::vector<Charge>{Hot(cost)},
                                       std::vector<const algorithm::LeaseTerms*>{&terms_});
    On(asked);
    return asked;
  }
  /// Spends all held permits, so that the next check finds nothing and more are requested.
  void SpendAll() {
    book_.hold = true;
    while (metrics().held.load() > 0) {
      Asked asked(Op::kCharge, {Hot()}, {&terms_});
      On(asked);
      ASSERT_TRUE(asked.admitted());
    }
    charges_ = book_.applications[Op::kCharge];
  }
  void FailHeld() {
    for (Held& held : std::exchange(book_.held, {})) {
      held.batch[0].status = Error{Code::kUnavailable, "lost"};
      held.done();
    }
  }
  int Passed() { return book_.applications[Op::kCharge] - charges_; }

  int charges_ = 0;
  std::list<Asked> asked_;
};

TEST_F(LeasingWaits, AreMetByTheGrant) {
  Warm();
  SpendAll();
  ASSERT_EQ(book_.held.size(), 1U) << "more was asked for";
  Asked& first = Ask();
  Asked& second = Ask(3);
  EXPECT_FALSE(first.told);
  EXPECT_EQ(Passed(), 0);
  AnswerHeld();
  EXPECT_TRUE(first.admitted());
  EXPECT_TRUE(second.admitted());
  EXPECT_TRUE(second.application.estimated);
  EXPECT_EQ(Passed(), 0);
}

TEST_F(LeasingWaits, TheCheckThatFindsNothingWaitsForWhatIsAskedForOnItsBehalf) {
  Warm();
  SpendAll();
  FailHeld();
  clock_.Advance(term() / 2);  // until then the store is not called
  Asked& first = Ask();
  EXPECT_FALSE(first.told);
  EXPECT_EQ(Passed(), 0);
  ASSERT_EQ(book_.held.size(), 1U);
  EXPECT_EQ(book_.held[0].batch[0].op, Op::kLease);
  AnswerHeld();
  EXPECT_TRUE(first.admitted());
}

TEST_F(LeasingWaits, GoOnToTheStoreIfTheQuestionFails) {
  Warm();
  SpendAll();
  Asked& asked = Ask();
  FailHeld();
  EXPECT_FALSE(asked.told);
  EXPECT_EQ(Passed(), 1);
  AnswerHeld();
  EXPECT_TRUE(asked.admitted());
  EXPECT_FALSE(asked.application.estimated);
}

TEST_F(LeasingWaits, GoOnToTheStoreIfTheGrantIsTooSmall) {
  Warm();
  SpendAll();
  Asked& first = Ask();
  Asked& second = Ask();
  ASSERT_TRUE(engine_.TryAcquire("hot", terms_.quota, LeftInStore() - 1).allowed());
  AnswerHeld();
  EXPECT_TRUE(first.admitted());
  EXPECT_FALSE(second.told);
  EXPECT_EQ(Passed(), 1);
  AnswerHeld();
  EXPECT_TRUE(second.told);
  EXPECT_FALSE(second.application.applied);
}

TEST_F(LeasingWaits, AreRefusedIfTheStoreHasNothing) {
  Warm();
  SpendAll();
  Asked& asked = Ask();
  ASSERT_TRUE(engine_.TryAcquire("hot", terms_.quota, LeftInStore()).allowed());
  AnswerHeld();
  ASSERT_TRUE(asked.told);
  EXPECT_FALSE(asked.application.applied);
  EXPECT_EQ(asked.decisions[0].verdict, Verdict::kLimited);
  EXPECT_GT(asked.decisions[0].retry_after, 0ns);
  EXPECT_EQ(Passed(), 0);
}

TEST_F(LeasingWaits, GoOnToTheStoreAfterAnEighthOfATerm) {
  Warm();
  SpendAll();
  Asked& asked = Ask();
  clock_.Advance(term() / 8);
  Ring();
  EXPECT_EQ(Passed(), 0);
  Asked& later = Ask();
  clock_.Advance(1ns);
  Ring();
  EXPECT_EQ(Passed(), 1);
  AnswerHeldCharges();
  EXPECT_TRUE(asked.admitted());
  EXPECT_FALSE(later.told);
  AnswerHeld();
  EXPECT_TRUE(later.admitted());
}

TEST_F(LeasingWaits, NobodyWaitsForASlowStore) {
  Warm();
  SpendAll();
  clock_.Advance(term() / 8 + 1ns);
  AnswerHeld();  // the request took that long
  SpendAll();
  Ask();
  EXPECT_EQ(Passed(), 1);
}

TEST_F(LeasingWaits, NobodyWaitsForMoreThanWasAskedFor) {
  Warm();
  SpendAll();
  Ask(500);
  EXPECT_EQ(Passed(), 1);
}

TEST_F(LeasingWaits, NobodyWaitsBesideAnotherCharge) {
  Warm();
  SpendAll();
  Asked both(Op::kCharge, {Hot(), {"other", 1, &exact_}}, {&terms_, nullptr});
  On(both);
  EXPECT_EQ(Passed(), 1);
  AnswerHeld();
  EXPECT_TRUE(both.admitted());
}

TEST_F(LeasingWaits, ABatchIsAnsweredWhenAllOfItIs) {
  Warm();
  SpendAll();
  Asked waits(Op::kCharge, {Hot()}, {&terms_});
  Asked plain(Op::kCharge, {{"other", 1, &exact_}}, {});
  Asked too(Op::kCharge, {Hot()}, {&terms_});
  std::vector<Application> batch = {waits.application, plain.application, too.application};
  int told = 0;
  store_->Apply(batch, [&told] { ++told; });
  EXPECT_EQ(Passed(), 1);
  AnswerHeldCharges();
  EXPECT_EQ(told, 0);
  EXPECT_TRUE(batch[1].applied);
  AnswerHeld();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(batch[0].applied);
  EXPECT_TRUE(batch[2].applied);
}

TEST_F(LeasingWaits, GoOnToTheStoreWhenTheNodeDrains) {
  Warm();
  SpendAll();
  Asked& asked = Ask();
  store_->Drain();
  EXPECT_EQ(Passed(), 1);
  AnswerHeld();
  EXPECT_TRUE(asked.admitted());
}

TEST_F(LeasingWaits, GoOnToTheStoreWhenTheQuotaChanges) {
  Warm();
  SpendAll();
  const algorithm::LeaseTerms before = terms_;
  Asked asked(Op::kCharge, {{"hot", 1, &before.quota}}, {&before});
  On(asked);
  terms_ = *algorithm::TermsFor(*Quota::TokenBucket(2000, 100));
  Ask();
  EXPECT_EQ(Passed(), 1);
  AnswerHeld();
  AnswerHeld();
  EXPECT_TRUE(asked.admitted());
}

TEST_F(LeasingWaits, AreToldWhenItGoesAway) {
  Warm();
  SpendAll();
  Asked& asked = Ask();
  store_.reset();
  ASSERT_TRUE(asked.told);
  EXPECT_EQ(asked.application.status.error().code, Code::kUnavailable);
}

TEST_F(LeasingWaits, WhoeverIsToldMayDestroyIt) {
  Warm();
  SpendAll();
  Asked first(Op::kCharge, {Hot()}, {&terms_});
  store_->Apply({&first.application, 1}, [this] { store_.reset(); });
  Asked& second = Ask();
  AnswerHeld();
  EXPECT_TRUE(first.application.applied);
  ASSERT_TRUE(second.told);
  EXPECT_EQ(second.application.status.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace weir::store::lease
