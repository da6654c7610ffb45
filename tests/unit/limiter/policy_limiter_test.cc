#include "limiter/policy_limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "policy/keys.h"
#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using namespace std::chrono_literals;
using store::Op;
using test::Asked;
using test::World;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kTwo = R"(
policies:
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 3, window: 10s}}}
  - {name: pay, match: {user: "*", route: /pay}, quota: {fixed_window: {limit: 2, window: 1m}}}
)";

TEST(PolicyLimiter, ABareKeyWithoutPolicyHasTheDefault) {
  World world;
  auto limiter = world.NewLimiter();
  Asked first = Asked::Key("user-123");
  Check& check = first.On(*limiter);
  EXPECT_TRUE(check.status.ok());
  EXPECT_EQ(check.decision.verdict, Verdict::kAllowed);
  EXPECT_EQ(check.decision.limit, 100);
  EXPECT_EQ(check.decision.remaining, 99);
  EXPECT_EQ(check.decision.reset_after, 100ms);  // one permit at 10 per second
  EXPECT_EQ(check.policy, "default");
  ASSERT_THAT(check.verdicts, SizeIs(1));
  EXPECT_EQ(check.verdicts[0].key, "key|user-123");
  // 99 more pass, the next waits for a tenth of a second.
  for (int i = 0; i < 99; ++i) EXPECT_TRUE(Asked::Key("user-123").On(*limiter).decision.allowed());
  Asked over = Asked::Key("user-123");
  EXPECT_EQ(over.On(*limiter).decision.verdict, Verdict::kLimited);
  EXPECT_EQ(over.check.decision.retry_after, 100ms);
  // Another key has a bucket of its own.
  EXPECT_EQ(Asked::Key("user-124").On(*limiter).decision.remaining, 99);
}

// For callers that answer a request after another part of it is decided, too.
TEST(PolicyLimiter, WhatDecidedChecksPointIntoLivesWhileItIsKept) {
  World world(kTwo);
  auto limiter = world.NewLimiter();
  Asked first = Asked::For({{"user", "a-name-that-is-too-long-to-lie-in-a-string-itself"}});
  std::shared_ptr<const void> kept;
  limiter->Decide(std::span(&first.check, 1), [&] { kept = limiter->Keep(); });
  const std::string key(first.check.verdicts.at(0).key);
  world.Publish("policies: [{name: other, key: k, quota: {fixed_window: {limit: 1, window: 1s}}}]");
  for (const char* name : {"b", "another-name-that-is-too-long-to-lie-in-a-string-itself"}) {
    Asked::For({{"user", name}}).On(*limiter);
    Asked::Key(name).On(*limiter);
  }
  EXPECT_EQ(first.check.policy, "per-user");
  EXPECT_EQ(first.check.verdicts.at(0).key, key);
  EXPECT_THAT(key, HasSubstr("a-name-that-is-too-long"));
  EXPECT_EQ(first.check.verdicts.at(0).quota->limit(), 3);
  EXPECT_EQ(limiter->Keep(), nullptr);  // outside of `done`
}

TEST(PolicyLimiter, ABareKeyThatAPolicyNamesHasItsQuota) {
  World world("policies: [{name: vip, key: boss, quota: {fixed_window: {limit: 2, window: 10s}}}]");
  auto limiter = world.NewLimiter();
  Asked asked = Asked::Key("boss");
  EXPECT_EQ(asked.On(*limiter).policy, "vip");
  EXPECT_EQ(asked.check.decision.remaining, 1);
  EXPECT_EQ(Asked::Key("Boss").On(*limiter).policy, "default");
}

TEST(PolicyLimiter, NothingAppliesMeansAllowedWithLimitZero) {
  World world(kTwo);
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"ip", "::1"}});
  asked.On(*limiter);
  EXPECT_TRUE(asked.check.decision.allowed());
  EXPECT_EQ(asked.check.decision.limit, 0);
  EXPECT_EQ(asked.check.policy, "");
  EXPECT_THAT(asked.check.verdicts, SizeIs(0));
}

TEST(PolicyLimiter, ARefusalByOnePolicyChargesNone) {
  World world(kTwo);
  auto limiter = world.NewLimiter();
  Asked pay = Asked::For({{"user", "1"}, {"route", "/pay"}});
  EXPECT_EQ(pay.On(*limiter).decision.remaining, 1);  // pay: 1 of 2 left; per-user: 2 of 3 left
  EXPECT_EQ(pay.check.policy, "pay");
  EXPECT_TRUE(pay.On(*limiter).decision.allowed());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(pay.On(*limiter).decision.verdict, Verdict::kLimited);
    EXPECT_EQ(pay.check.policy, "pay");
    EXPECT_EQ(pay.check.decision.retry_after, 60s);
    EXPECT_FALSE(pay.check.applied);
  }
  // Two were granted, so the user has one of three left.
  Asked other = Asked::For({{"user", "1"}, {"route", "/x"}}, 1, Op::kPeek);
  EXPECT_EQ(other.On(*limiter).decision.remaining, 1);
  EXPECT_TRUE(other.check.decision.allowed());
}

TEST(PolicyLimiter, TheLongestWaitIsTheAnswer) {
  World world(kTwo);
  auto limiter = world.NewLimiter();
  // Three permits are a user's whole limit in 10 s, and more than /pay ever grants.
  Asked user = Asked::For({{"user", "1"}}, 3);
  EXPECT_TRUE(user.On(*limiter).decision.allowed());
  Asked pay = Asked::For({{"user", "1"}, {"route", "/pay"}});
  EXPECT_EQ(pay.On(*limiter).policy, "per-user");
  EXPECT_EQ(pay.check.decision.retry_after, 10s);
  Asked never = Asked::For({{"user", "1"}, {"route", "/pay"}}, 3);
  EXPECT_EQ(never.On(*limiter).decision.verdict, Verdict::kNever);
  EXPECT_EQ(never.check.policy, "pay");
}

TEST(PolicyLimiter, OneBucketIsChargedOnceHoweverManyDescriptorsLeadToIt) {
  World world(kTwo);
  auto limiter = world.NewLimiter();
  const policy::Entry user[] = {{"user", "1"}};
  const policy::Entry pay[] = {{"user", "1"}, {"route", "/pay"}};
  const policy::Descriptor descriptors[] = {user, pay};
  Check check;
  check.request.descriptors = descriptors;
  limiter->Decide(std::span(&check, 1), [] {});
  ASSERT_THAT(check.verdicts, SizeIs(3));
  EXPECT_EQ(check.verdicts[0].descriptor, 0U);
  EXPECT_EQ(check.verdicts[1].descriptor, 1U);
  EXPECT_EQ(check.verdicts[2].descriptor, 1U);
  for (const PolicyVerdict& verdict : check.verdicts) {
    EXPECT_EQ(verdict.decision.remaining, verdict.policy == "per-user" ? 2 : 1);
  }
}

TEST(PolicyLimiter, ShadowDecidesAndCountsButNeverBlocks) {
  World world(R"(
policies:
  - {name: real, match: {user: "*"}, quota: {fixed_window: {limit: 4, window: 10s}}}
  - {name: trial, match: {user: "*"}, shadow: true, quota: {fixed_window: {limit: 1, window: 10s}}}
)");
  auto limiter = world.NewLimiter();
  for (int i = 0; i < 4; ++i) {
    Asked asked = Asked::For({{"user", "1"}});
    EXPECT_TRUE(asked.On(*limiter).decision.allowed());
    EXPECT_EQ(asked.check.policy, "real");
    ASSERT_THAT(asked.check.verdicts, SizeIs(2));
    const PolicyVerdict& trial = asked.check.verdicts[1];
    EXPECT_TRUE(trial.shadow);
    EXPECT_EQ(trial.decision.allowed(), i == 0);
  }
  EXPECT_FALSE(Asked::For({{"user", "1"}}).On(*limiter).decision.allowed());
  const PolicyCounts trial = world.CountsOf("trial");
  EXPECT_EQ(trial.allowed, 1U);
  EXPECT_EQ(trial.shadow_limited, 4U);
  EXPECT_EQ(trial.limited, 0U);
  const PolicyCounts real = world.CountsOf("real");
  EXPECT_EQ(real.allowed, 4U);
  EXPECT_EQ(real.limited, 1U);
  const CheckCounts checks = world.shared().counters.Checks();
  EXPECT_EQ(checks.allowed, 4U);
  EXPECT_EQ(checks.limited, 1U);
}

TEST(PolicyLimiter, UnlimitedIsNamedAndNeverRefuses) {
  World world(R"(
policies:
  - {name: any, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 10s}}}
  - {name: free, match: {user: admin}, unlimited: true}
)");
  auto limiter = world.NewLimiter();
  for (int i = 0; i < 5; ++i) {
    Asked asked = Asked::For({{"user", "admin"}}, 1000);
    EXPECT_TRUE(asked.On(*limiter).decision.allowed());
    EXPECT_EQ(asked.check.policy, "free");
    EXPECT_EQ(asked.check.decision.limit, 0);
  }
}

TEST(PolicyLimiter, APolicysCostMultipliesTheRequests) {
  World world(
      "policies: [{name: a, match: {}, cost: 5, quota: {fixed_window: {limit: 12, window: 1s}}}]");
  auto limiter = world.NewLimiter();
  EXPECT_EQ(Asked::For({}, 2).On(*limiter).decision.remaining, 2);  // 12 - 2 * 5
  EXPECT_EQ(Asked::For({}, 3).On(*limiter).decision.verdict, Verdict::kNever);
  EXPECT_EQ(Asked::For({}, INT64_MAX).On(*limiter).decision.verdict, Verdict::kNever);
  EXPECT_EQ(Asked::For({}, -7).On(*limiter).decision.remaining, 2);
}

TEST(PolicyLimiter, ABlockedPolicyAdmitsNothingWhateverItsQuota) {
  for (const std::string quota :
       {"{fixed_window: {limit: 100, window: 1h}}", "{anchored_window: {limit: 100, window: 1h}}",
        "{sliding_log: {limit: 100, window: 1h}}", "{sliding_counter: {limit: 100, window: 1h}}",
        "{token_bucket: {capacity: 100, refill_per_second: 10}}",
        "{concurrency: {limit: 100, lease: 1h}}", "{fixed_window: {limit: 2, window: 1h}}",
        "{fixed_window: {limit: 1099511627776, window: 1h}}",
        "{fixed_window: {limit: 100, window: 1h}}, overdraw: true"}) {
    World world("policies: [{name: b, match: {}, blocked: true, quota: " + quota + "}]");
    auto limiter = world.NewLimiter();
    EXPECT_TRUE(Asked::For({}, 0).On(*limiter).decision.allowed()) << quota;
    for (const std::int64_t cost :
         {std::int64_t{1}, std::int64_t{2}, std::int64_t{100}, kMaxLimit}) {
      Asked asked = Asked::For({}, cost);
      EXPECT_FALSE(asked.On(*limiter).decision.allowed()) << quota << ", cost " << cost;
      EXPECT_EQ(asked.check.decision.limit, 0) << quota;
      EXPECT_EQ(asked.check.decision.remaining, 0) << quota;
    }
  }
}

TEST(PolicyLimiter, ARefundReturnsNoMoreThanItsCostWhileAPolicyIsBlocked) {
  const std::string quota = "quota: {fixed_window: {limit: 10, window: 1h}}}]";
  World world("policies: [{name: p, match: {}, " + quota);
  auto limiter = world.NewLimiter();
  EXPECT_EQ(Asked::For({}, 9).On(*limiter).decision.remaining, 1);
  world.Publish("policies: [{name: p, match: {}, blocked: true, " + quota);
  EXPECT_TRUE(Asked::For({}, 2, Op::kRefund).On(*limiter).status.ok());
  EXPECT_FALSE(Asked::For({}).On(*limiter).decision.allowed());
  world.Publish("policies: [{name: p, match: {}, " + quota);
  EXPECT_EQ(Asked::For({}, 0, Op::kPeek).On(*limiter).decision.remaining, 3);  // 10 - 9 + 2
}

TEST(PolicyLimiter, RefundAndResetGiveBack) {
  World world(kTwo);
  auto limiter = world.NewLimiter();
  EXPECT_EQ(Asked::For({{"user", "1"}}, 3).On(*limiter).decision.remaining, 0);
  EXPECT_EQ(Asked::For({{"user", "1"}}, 2, Op::kRefund).On(*limiter).decision.remaining, 2);
  EXPECT_EQ(Asked::For({{"user", "1"}}, 1, Op::kReset).On(*limiter).decision.remaining, 3);
  EXPECT_EQ(Asked::For({{"user", "1"}}).On(*limiter).decision.remaining, 2);
}

TEST(PolicyLimiter, ALeaseComesBackOnce) {
  World world(R"(
policies:
  - {name: rate, match: {user: "*"}, quota: {fixed_window: {limit: 2, window: 1s}}}
  - {name: jobs, match: {user: "*"}, quota: {concurrency: {limit: 5, lease: 30s}}}
)");
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"user", "1"}});
  asked.On(*limiter);
  // The rate has less left and so determines the answer; the lease is still the other policy's.
  EXPECT_EQ(asked.check.policy, "rate");
  const std::int64_t lease = asked.check.decision.lease;
  ASSERT_NE(lease, 0);
  Asked release = Asked::For({{"user", "1"}}, 1, Op::kRelease);
  release.check.lease = lease;
  EXPECT_TRUE(release.On(*limiter).applied);
  EXPECT_FALSE(release.On(*limiter).applied);
}

TEST(PolicyLimiter, CostsAndQuotasPerDescriptor) {
  World world(kTwo);
  auto limiter = world.NewLimiter();
  const policy::Entry one[] = {{"user", "1"}};
  const policy::Entry two[] = {{"user", "2"}};
  const policy::Descriptor descriptors[] = {one, two};
  const std::int64_t costs[] = {2, 5};
  const Quota own = *Quota::FixedWindow(50, 1s);
  const Quota* const overrides[] = {nullptr, &own};
  Check check;
  check.request.descriptors = descriptors;
  check.request.costs = costs;
  check.request.overrides = overrides;
  limiter->Decide(std::span(&check, 1), [] {});
  ASSERT_THAT(check.verdicts, SizeIs(2));
  EXPECT_EQ(check.verdicts[0].decision.remaining, 1);
  EXPECT_EQ(check.verdicts[1].decision.remaining, 45);
  EXPECT_EQ(check.verdicts[1].policy, "override");
  EXPECT_EQ(check.verdicts[1].key, "default/%override1|user:2");
  check.request.domain = "no policies here";
  limiter->Decide(std::span(&check, 1), [] {});
  EXPECT_THAT(check.verdicts, SizeIs(0));
}

TEST(PolicyLimiter, ABatchIsDecidedInOrder) {
  World world(kTwo);
  auto limiter = world.NewLimiter();
  std::array<Asked, 5> asked = {Asked::For({{"user", "1"}}), Asked::For({{"user", "1"}}),
                                Asked::Key("k"), Asked::For({{"user", "1"}}),
                                Asked::For({{"user", "1"}})};
  std::vector<Check> checks;
  for (Asked& one : asked) checks.push_back(one.check);
  limiter->Decide(checks, [] {});
  EXPECT_EQ(checks[0].decision.remaining, 2);
  EXPECT_EQ(checks[1].decision.remaining, 1);
  EXPECT_EQ(checks[2].decision.remaining, 99);
  EXPECT_EQ(checks[3].decision.remaining, 0);
  EXPECT_EQ(checks[4].decision.verdict, Verdict::kLimited);
}

TEST(PolicyLimiter, AChangeIsInForceForTheNextCheckAndKeepsCharges) {
  World world(kTwo);
  auto limiter = world.NewLimiter();
  EXPECT_EQ(Asked::For({{"user", "1"}}, 2).On(*limiter).decision.remaining, 1);
  world.Publish(
      "policies: [{name: per-user, match: {user: '*'}, quota: {fixed_window: {limit: 10, window: "
      "10s}}}]");
  EXPECT_EQ(Asked::For({{"user", "1"}}).On(*limiter).decision.remaining, 7);  // 10 - 2 - 1
}

// The client may have chosen the value: an error would bypass the limit wherever errors let
// requests pass, as they do in Envoy.
TEST(PolicyLimiter, AValueThatIsTooLongForANameIsLimitedLikeAnyOther) {
  World world(kTwo);
  auto limiter = world.NewLimiter();
  for (const char filler : {'x', '|', '\xff'}) {
    std::string huge(5000, filler);
    for (int i = 0; i < 3; ++i) {
      Asked asked = Asked::For({{"user", huge}});
      const Check& check = asked.On(*limiter);
      ASSERT_TRUE(check.status.ok()) << check.status.error().message;
      EXPECT_EQ(check.decision.remaining, 2 - i);
      EXPECT_LE(check.verdicts.at(0).key.size(), policy::kMaxKeyBytes);
      EXPECT_TRUE(check.verdicts.at(0).key.starts_with("default/per-user|user:"));
    }
    EXPECT_EQ(Asked::For({{"user", huge}}).On(*limiter).decision.verdict, Verdict::kLimited);
    huge.back() = '1';
    EXPECT_EQ(Asked::For({{"user", huge}}).On(*limiter).decision.remaining, 2) << "somebody else";
  }
}

TEST(PolicyLimiter, APolicyOnTrialReplacesNoEnforcedOne) {
  World world(R"(
policies:
  - {name: real, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 10s}}}
  - {name: trial, match: {route: "*"}, replaces: [real], shadow: true, quota: {fixed_window: {limit: 9, window: 10s}}}
  - {name: free, match: {tier: "*"}, replaces: [real], quota: {fixed_window: {limit: 5, window: 10s}}}
)");
  auto limiter = world.NewLimiter();
  Asked tried = Asked::For({{"user", "1"}, {"route", "/"}});
  EXPECT_TRUE(tried.On(*limiter).decision.allowed());
  EXPECT_FALSE(tried.On(*limiter).decision.allowed());
  Asked replaced = Asked::For({{"user", "1"}, {"tier", "gold"}});
  EXPECT_EQ(replaced.On(*limiter).policy, "free");
  EXPECT_TRUE(replaced.check.decision.allowed());
}

TEST(PolicyLimiter, PoliciesThatWereReplacedAreFreedWithTheNextCheck) {
  World world(kTwo);
  auto limiter = world.NewLimiter();
  const std::weak_ptr<const policy::PolicySet> old = limiter->policies();
  Asked outer = Asked::For({{"user", "1"}});
  limiter->Decide(std::span(&outer.check, 1), [&] { Asked::For({{"user", "1"}}).On(*limiter); });
  world.Publish("");
  EXPECT_FALSE(old.expired());
  Asked::For({{"user", "1"}}).On(*limiter);
  EXPECT_TRUE(old.expired());
}

TEST(PolicyLimiter, DoneMayAskAgain) {
  World world(kTwo);
  auto limiter = world.NewLimiter();
  Asked outer = Asked::For({{"user", "1"}});
  Asked inner = Asked::For({{"user", "1"}});
  limiter->Decide(std::span(&outer.check, 1), [&] {
    world.Publish("");
    inner.On(*limiter);
    EXPECT_EQ(outer.check.policy, "per-user");  // still valid, though the policies are new
  });
  EXPECT_EQ(inner.check.policy, "");
}

}  // namespace
}  // namespace weir::limiter
