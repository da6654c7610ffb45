// How the limiter's answer becomes the facts about a bucket of the rate limit quota service.

#include "protocol/grpc/quota_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "limiter/assignments.h"
#include "policy/policy_set.h"
#include "unit/protocol/grpc/fake_limiter.h"

namespace weir::grpc::testing {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Quota kWindow = *Quota::FixedWindow(600, seconds(60));  // 10 a second
const Quota kBucket = *Quota::TokenBucket(1000, 7);           // 7 a second

Decision Left(std::int64_t remaining) {
  Decision decision;
  decision.remaining = remaining;
  return decision;
}

TEST(QuotaFacts, AreThoseOfTheTightestPolicy) {
  limiter::Check check;
  AddVerdict(check, 0, "bucket", &kBucket, Left(900));
  AddVerdict(check, 0, "window", &kWindow, Left(20));
  const QuotaFacts facts = FactsOf(check);
  EXPECT_TRUE(facts.limited);
  EXPECT_TRUE(facts.assignable);
  EXPECT_EQ(facts.per_second, 7);
  EXPECT_EQ(facts.remaining, 20);
  EXPECT_FALSE(facts.single_attempt);
}

TEST(QuotaFacts, WhatIsOnTrialOrWithoutALimitDoesNotLimit) {
  limiter::Check check;
  AddVerdict(check, 0, "trial", &kWindow, Left(0), /*shadow=*/true);
  AddVerdict(check, 0, "free", nullptr, Left(0));
  check.verdicts[0].key = "trial-key";
  check.verdicts[1].key = "free-key";
  EXPECT_FALSE(FactsOf(check).limited);
  EXPECT_EQ(FactsOf(check).remaining, limiter::kUnlimitedPerSecond);
  EXPECT_THAT(KeysOf(check), IsEmpty());
  AddVerdict(check, 0, "window", &kWindow, Left(20));
  check.verdicts[2].key = "window-key";
  EXPECT_TRUE(FactsOf(check).limited);
  EXPECT_THAT(KeysOf(check), ElementsAre("window-key"));
}

TEST(QuotaFacts, WhatIsRefusedForWantOfAPolicyIsAssignedNothing) {
  limiter::Check check;
  check.matched = false;
  EXPECT_FALSE(FactsOf(check).limited);
  check.decision.verdict = Verdict::kNever;
  EXPECT_TRUE(FactsOf(check).limited);
  EXPECT_FALSE(FactsOf(check).assignable);
}

TEST(QuotaFacts, AreInRequestsWhateverOneCosts) {
  policy::Policy rule;
  rule.definition.quota = kWindow;
  rule.definition.cost = 3;
  limiter::Check check;
  AddVerdict(check, 0, "window", &kWindow, Left(20));
  check.verdicts.back().rule = &rule;
  EXPECT_EQ(FactsOf(check).per_second, 4);  // 10 / 3, rounded up
  EXPECT_EQ(FactsOf(check).remaining, 6);   // 20 / 3, rounded down
  EXPECT_FALSE(FactsOf(check).single_attempt);
  rule.definition.overdraw = true;
  EXPECT_TRUE(FactsOf(check).single_attempt) << "what is refused counts, too";
}

TEST(QuotaFacts, RequestsInFlightCannotBeAssigned) {
  const Quota flight = *Quota::Concurrency(5, seconds(10));
  limiter::Check check;
  AddVerdict(check, 0, "flight", &flight, Left(5));
  EXPECT_FALSE(FactsOf(check).assignable);
}

TEST(QuotaFacts, WithoutAStoreNothingIsLeft) {
  limiter::Check check;
  check.status = Error{Code::kUnavailable, "the store does not answer"};
  EXPECT_TRUE(FactsOf(check).limited);
  EXPECT_EQ(FactsOf(check).remaining, 0);
}

TEST(QuotaNames, TwoIdsNeverHaveTheSameText) {
  EXPECT_NE(TextOf({{"a", "bc"}}), TextOf({{"ab", "c"}}));
  EXPECT_NE(TextOf({{"a", "1:bc"}}), TextOf({{"a", ""}, {"b", "c"}}));
}

}  // namespace
}  // namespace weir::grpc::testing
