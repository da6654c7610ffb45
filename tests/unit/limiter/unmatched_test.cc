// Requests to which no policy applies, when they are denied.

#include <gtest/gtest.h>

#include "limiter/explain.h"
#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using test::Asked;
using test::World;

constexpr std::string_view kPolicies = R"(
policies:
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 9, window: 1d}}}
  - {name: trial, match: {plan: "*"}, shadow: true, quota: {concurrency: {limit: 5, lease: 1h}}}
  - {name: spare, match: {tier: "*"}, quota_mode: true, quota: {fixed_window: {limit: 9, window: 1d}}}
)";

class Unmatched : public ::testing::Test {
 protected:
  void Deny() { world_.shared().deny_unmatched = true; }
  const Check& Ask(const char* name, store::Op op = store::Op::kCharge) {
    asked_.reset(new Asked(Asked::For({{name, "a"}}, 1, op)));
    return asked_->On(*limiter_);
  }

  World world_{kPolicies};
  std::unique_ptr<PolicyLimiter> limiter_ = world_.NewLimiter();
  std::unique_ptr<Asked> asked_;
};

TEST_F(Unmatched, IsAllowedUnlessDenied) {
  const Check& check = Ask("usr");
  EXPECT_TRUE(check.decision.allowed());
  EXPECT_TRUE(check.applied);
  EXPECT_FALSE(check.matched);
  EXPECT_TRUE(Ask("user").matched);
}

TEST_F(Unmatched, IsRefusedForGood) {
  Deny();
  for (const store::Op op : {store::Op::kCharge, store::Op::kPeek, store::Op::kOverdraw}) {
    const Check& check = Ask("usr", op);
    EXPECT_EQ(check.decision.verdict, Verdict::kNever);
    EXPECT_TRUE(check.refused_unmatched());
    EXPECT_FALSE(check.applied);
    EXPECT_TRUE(check.status.ok());
  }
  EXPECT_TRUE(Ask("user").decision.allowed());
  EXPECT_EQ(world_.shared().counters.Checks().unmatched, 1U);  // the charge
  EXPECT_EQ(world_.shared().counters.Checks().limited, 1U);
}

TEST_F(Unmatched, WhatIsGivenBackIsNotRefused) {
  Deny();
  EXPECT_TRUE(Ask("usr", store::Op::kRefund).decision.allowed());
  EXPECT_TRUE(Ask("usr", store::Op::kRefund).matched);
}

TEST_F(Unmatched, APolicyOnTrialLetsNothingPass) {
  Deny();
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(Ask("plan").refused_unmatched());
  EXPECT_EQ(Ask("plan").decision.lease, 0);
  // Denied requests do not keep the permits that the shadow policy granted.
  const Check& look = Ask("plan", store::Op::kPeek);
  ASSERT_EQ(look.verdicts.size(), 1U);
  EXPECT_TRUE(look.verdicts[0].decision.allowed());
}

TEST_F(Unmatched, OneOfSeveralQuotasIsAPolicyThatApplies) {
  Deny();
  EXPECT_TRUE(Ask("tier").decision.allowed());
  EXPECT_TRUE(Ask("tier").matched);
}

TEST_F(Unmatched, IsExplained) {
  const auto why = [&](const char* name) {
    Asked asked = Asked::For({{name, "a"}});
    std::string text;
    Explain(*limiter_, asked.check.request, [&](const Explanation& told) { text = told.why; });
    return text;
  };
  EXPECT_EQ(why("usr"), "allowed: no policy applies");
  Deny();
  EXPECT_EQ(why("usr"), "refused: no policy applies (unmatched: deny)");
  EXPECT_EQ(why("plan"), "refused: only shadow policies apply (unmatched: deny)");
}

}  // namespace
}  // namespace weir::limiter
