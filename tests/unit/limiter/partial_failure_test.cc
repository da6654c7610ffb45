// A store that decides a part of one check and not the rest: nodes of a cluster that are down, or a
// damaged row.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using namespace std::chrono_literals;
using store::Op;
using test::Asked;
using test::World;
using ::testing::SizeIs;

/// The memory store, except for applications with a key that contains a given text.
class PartlyAway final : public store::Store {
 public:
  PartlyAway(Engine& engine, const std::string& away) : inner_(engine), away_(away) {}
  void Apply(std::span<store::Application> batch, store::Done done) override {
    for (store::Application& application : batch) {
      bool reached = true;
      for (const store::Charge& charge : application.charges) {
        if (!away_.empty() && charge.key.find(away_) != charge.key.npos) reached = false;
      }
      if (reached) {
        inner_.Apply({&application, 1}, [] {});
      } else {
        application.status = Error{Code::kUnavailable, "a part is away"};
      }
    }
    done();
  }

 private:
  store::memory::MemoryStore inner_;
  const std::string& away_;
};

class PartialFailure : public testing::Test {
 protected:
  void Start(std::string_view policies) {
    world_ = std::make_unique<World>(policies);
    limiter_ = std::make_unique<PolicyLimiter>(
        world_->shared(), std::make_unique<PartlyAway>(world_->engine(), away_));
  }
  const PolicyVerdict& Of(const Check& check, std::string_view policy) {
    for (const PolicyVerdict& verdict : check.verdicts) {
      if (verdict.policy == policy) return verdict;
    }
    ADD_FAILURE() << policy << " does not apply";
    return check.verdicts.front();
  }

  std::string away_;
  std::unique_ptr<World> world_;
  std::unique_ptr<PolicyLimiter> limiter_;
};

constexpr std::string_view kTrial = R"(
policies:
  - {name: real, match: {user: "*"}, quota: {fixed_window: {limit: 20, window: 1h}}}
  - {name: trial, match: {user: "*"}, shadow: true, quota: {fixed_window: {limit: 10, window: 1h}}}
  - {name: free, match: {plan: "*"}, unlimited: true}
)";

TEST_F(PartialFailure, OnlyWhatCouldNotBeDecidedIsDecidedHere) {
  Start(kTrial);
  away_ = "trial";
  Asked asked = Asked::For({{"user", "1"}});
  const Check& check = asked.On(*limiter_);
  EXPECT_TRUE(check.degraded);
  EXPECT_EQ(check.degraded_by, "") << "what is enforced was decided by the store";
  EXPECT_FALSE(Of(check, "real").degraded);
  EXPECT_EQ(Of(check, "real").decision.remaining, 19);
  EXPECT_TRUE(Of(check, "trial").degraded);
  EXPECT_EQ(Of(check, "trial").decision.remaining, 0) << "a share of 1 of 10";
  EXPECT_EQ(world_->CountsOf("trial").errors, 1U);
  EXPECT_EQ(world_->CountsOf("real").errors, 0U);
}

// A client retries a failed refund, so parts that succeeded would be returned twice.
TEST_F(PartialFailure, ARefundFailsOnlyIfNothingWasReturned) {
  Start(kTrial);
  ASSERT_TRUE(Asked::For({{"user", "1"}}, 2).On(*limiter_).decision.allowed());
  away_ = "trial";
  Asked refund = Asked::For({{"user", "1"}, {"plan", "gold"}}, 1, Op::kRefund);
  const Check& check = refund.On(*limiter_);
  ASSERT_TRUE(check.status.ok()) << check.status.error().message;
  EXPECT_EQ(Of(check, "real").decision.remaining, 19);
  EXPECT_TRUE(Of(check, "trial").degraded);
  away_ = "user:1";
  refund.On(*limiter_);
  ASSERT_FALSE(check.status.ok());
  EXPECT_EQ(check.status.error().code, Code::kUnavailable);
  EXPECT_FALSE(check.applied);
}

TEST_F(PartialFailure, DescriptorsOfOneBucketHaveOneAnswer) {
  Start(kTrial);
  away_ = "real";
  const policy::Entry entries[] = {{"user", "1"}};
  const policy::Descriptor descriptors[] = {entries, entries};
  Check check;
  check.request.descriptors = descriptors;
  limiter_->Decide(std::span(&check, 1), [] {});
  ASSERT_THAT(check.verdicts, SizeIs(4));
  EXPECT_EQ(check.degraded_by, "local");
  for (const PolicyVerdict& verdict : check.verdicts) {
    // A share of 2 of 20, of which one is taken.
    EXPECT_EQ(verdict.decision.remaining, verdict.policy == "real" ? 1 : 9) << verdict.policy;
  }
}

TEST_F(PartialFailure, ALookChargesNothingHereEither) {
  Start(kTrial);
  away_ = "real";
  for (int i = 0; i < 5; ++i) {
    Asked look = Asked::For({{"user", "1"}}, 1, Op::kPeek);
    EXPECT_TRUE(look.On(*limiter_).decision.allowed());
    EXPECT_TRUE(look.check.degraded);
  }
  EXPECT_TRUE(Asked::For({{"user", "1"}}).On(*limiter_).decision.allowed());
  EXPECT_TRUE(Asked::For({{"user", "1"}}).On(*limiter_).decision.allowed());
  EXPECT_FALSE(Asked::For({{"user", "1"}}).On(*limiter_).decision.allowed());
}

TEST_F(PartialFailure, WhatAlwaysCountsGoesIntoDebtHere) {
  Start(
      "policies: [{name: tokens, match: {}, overdraw: true, "
      "quota: {fixed_window: {limit: 100, window: 1h}}}]");
  away_ = "tokens";
  EXPECT_TRUE(Asked::For({}, 8).On(*limiter_).decision.allowed());
  // 8 + 8 of a share of 10: it counts, and the bucket is in debt.
  EXPECT_FALSE(Asked::For({}, 8).On(*limiter_).decision.allowed());
  EXPECT_FALSE(Asked::For({}, 0, Op::kPeek).On(*limiter_).decision.allowed());
}

TEST_F(PartialFailure, WhatAlwaysCountsIsRefusedHereIfThePolicySaysSo) {
  Start(
      "policies: [{name: tokens, match: {}, overdraw: true, on_store_error: deny, "
      "quota: {fixed_window: {limit: 100, window: 1h}}}]");
  away_ = "tokens";
  EXPECT_EQ(Asked::For({}, 8).On(*limiter_).decision.verdict, Verdict::kLimited);
}

TEST_F(PartialFailure, AnOverdrawingCheckOverdrawsHereToo) {
  Start(kTrial);
  away_ = "real";
  Asked asked = Asked::For({{"user", "1"}}, 5, Op::kOverdraw);
  EXPECT_FALSE(asked.On(*limiter_).decision.allowed()) << "5 of a share of 2";
  EXPECT_FALSE(Asked::For({{"user", "1"}}).On(*limiter_).decision.allowed());
}

TEST_F(PartialFailure, ARequestsOwnQuotaHasItsShareHere) {
  Start(kTrial);
  const Quota own = *Quota::FixedWindow(20, 1h);
  const Quota* const overrides[] = {&own};
  away_ = "override";
  int admitted = 0;
  for (int i = 0; i < 5; ++i) {
    Asked asked = Asked::For({{"user", "1"}});
    asked.check.request.overrides = overrides;
    admitted += asked.On(*limiter_).decision.allowed() ? 1 : 0;
    EXPECT_EQ(asked.check.degraded_by, "local");
  }
  EXPECT_EQ(admitted, 2);  // a tenth of 20
}

TEST_F(PartialFailure, OfARequestsOwnQuotaTheBucketIsSampledWithoutAPolicy) {
  Start(kTrial);
  const Quota own = *Quota::FixedWindow(20, 1h);
  const Quota* const overrides[] = {&own};
  Asked asked = Asked::For({{"user", "1"}});
  asked.check.request.overrides = overrides;
  EXPECT_EQ(asked.On(*limiter_).decision.remaining, 19);
  TopKeys& top = world_->shared().top;
  top.Collect(test::kStart);
  const auto hot = top.Top(TopKeys::Kind::kHot, 10, test::kStart);
  ASSERT_THAT(hot, SizeIs(1));
  EXPECT_EQ(hot[0].key, "default/%override3600|user:1");
  EXPECT_EQ(hot[0].policy, kNoPolicy);
}

TEST_F(PartialFailure, WhatIsBlockedIsRefusedWithoutTheStore) {
  away_ = "real";
  for (const std::string rule : {"allow", "local", "deny"}) {
    Start("policies: [{name: real, match: {user: '*'}, blocked: true, on_store_error: " + rule +
          ", quota: {fixed_window: {limit: 20, window: 1h}}}]");
    Asked asked = Asked::For({{"user", "1"}});
    EXPECT_FALSE(asked.On(*limiter_).decision.allowed()) << rule;
    EXPECT_EQ(asked.check.decision.limit, 0) << rule;
  }
}

TEST_F(PartialFailure, AReservationOfWhatWasNotChargedSettlesNothing) {
  Start(
      "policies: [{name: real, match: {user: '*'}, on_store_error: allow, "
      "quota: {fixed_window: {limit: 20, window: 1h}}}]");
  away_ = "real";
  Asked asked = Asked::For({{"user", "1"}}, 5);
  asked.check.reserve = 60s;
  const std::string text = asked.On(*limiter_).reservation;
  ASSERT_FALSE(text.empty());
  away_.clear();
  Asked settle = Asked::Key({}, 0, Op::kSettle);
  settle.check.settles = text;
  EXPECT_TRUE(settle.On(*limiter_).applied) << "there is nothing to settle";
  EXPECT_EQ(Asked::For({{"user", "1"}}, 0, Op::kPeek).On(*limiter_).decision.remaining, 20);
}

TEST_F(PartialFailure, ASettlementThatTheStoreCannotMakeIsAnError) {
  Start(
      "policies: [{name: real, match: {user: '*'}, quota: {fixed_window: {limit: 20, window: "
      "1h}}}]");
  Asked asked = Asked::For({{"user", "1"}}, 5);
  asked.check.reserve = 60s;
  const std::string text = asked.On(*limiter_).reservation;
  away_ = "real";
  Asked settle = Asked::Key({}, 0, Op::kSettle);
  settle.check.settles = text;
  EXPECT_FALSE(settle.On(*limiter_).applied);
  ASSERT_FALSE(settle.check.status.ok());
  away_.clear();
  Asked again = Asked::Key({}, 0, Op::kSettle);
  again.check.settles = text;
  EXPECT_TRUE(again.On(*limiter_).applied);
}

}  // namespace
}  // namespace weir::limiter
