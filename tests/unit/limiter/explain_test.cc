#include "limiter/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using test::Asked;
using test::World;
using ::testing::SizeIs;

Explanation ExplainNow(PolicyLimiter& limiter, const policy::Request& request) {
  Explanation told;
  Explain(limiter, request, [&told](Explanation explanation) { told = std::move(explanation); });
  return told;
}

TEST(Explain, NamesPoliciesBucketsAndReasonsWithoutCharging) {
  World world(R"(
domain: api
policies:
  - {name: any, match: {user: "*"}, quota: {fixed_window: {limit: 9, window: 10s}}}
  - {name: vip, match: {user: vip}, quota: {fixed_window: {limit: 1, window: 10s}}}
  - {name: trial, match: {user: "*", route: "*"}, shadow: true, quota: {fixed_window: {limit: 5, window: 1s}}}
)");
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"user", "vip"}, {"route", "/x"}});
  asked.check.request.domain = "api";
  Explanation before = ExplainNow(*limiter, asked.check.request);
  EXPECT_EQ(before.why, "allowed by policy 'vip'");
  asked.On(*limiter);
  world.clock().Advance(std::chrono::milliseconds(2500));
  for (int i = 0; i < 2; ++i) {
    const Explanation told = ExplainNow(*limiter, asked.check.request);
    EXPECT_EQ(told.decision.verdict, Verdict::kLimited);
    EXPECT_EQ(told.policy, "vip");
    EXPECT_EQ(told.why, "limited by policy 'vip'; retry in 7500 ms");  // 10 s - 2.5 s
    ASSERT_THAT(told.policies, SizeIs(3));
    EXPECT_EQ(told.policies[0].policy, "vip");
    EXPECT_EQ(told.policies[0].key, "api/vip|user:vip");
    EXPECT_EQ(told.policies[0].source, "p.yaml:5:5");
    EXPECT_EQ(told.policies[0].why, "would limit: 0 of 1 left, retry in 7500 ms");
    EXPECT_EQ(told.policies[1].policy, "trial");
    EXPECT_EQ(told.policies[1].why, "would allow: 5 of 5 left (shadow: counted, not enforced)");
    EXPECT_EQ(told.policies[2].policy, "any");
    EXPECT_EQ(told.policies[2].replaced_by, "vip");
  }
}

TEST(Explain, ABareKeyAndNothingAtAll) {
  World world;
  auto limiter = world.NewLimiter();
  const Explanation key = ExplainNow(*limiter, Asked::Key("k").check.request);
  EXPECT_EQ(key.why, "allowed by policy 'default'");
  ASSERT_THAT(key.policies, SizeIs(1));
  EXPECT_EQ(key.policies[0].source, "built in");
  Asked nobody = Asked::For({{"user", "1"}});
  EXPECT_EQ(ExplainNow(*limiter, nobody.check.request).why, "allowed: no policy applies");
}

TEST(Explain, ACostAboveTheLimitCanNeverBeAllowed) {
  World world("policies: [{name: a, match: {}, quota: {fixed_window: {limit: 3, window: 10s}}}]");
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"user", "1"}}, 5);
  const Explanation told = ExplainNow(*limiter, asked.check.request);
  EXPECT_EQ(told.why, "can never be allowed by policy 'a': the cost is larger than its limit");
  ASSERT_THAT(told.policies, SizeIs(1));
  EXPECT_EQ(told.policies[0].why, "would never allow: the cost is larger than the limit of 3");
}

TEST(Explain, PoliciesThatNeverRefuse) {
  World world(R"(
policies:
  - {name: trial, match: {route: /x}, shadow: true, quota: {fixed_window: {limit: 5, window: 1s}}}
  - {name: free, match: {user: "*"}, unlimited: true}
  - {name: vip, match: {user: vip}, quota: {fixed_window: {limit: 1, window: 1s}}}
)");
  auto limiter = world.NewLimiter();
  Asked tried = Asked::For({{"route", "/x"}});
  EXPECT_EQ(ExplainNow(*limiter, tried.check.request).why, "allowed: only shadow policies apply");
  Asked anybody = Asked::For({{"user", "1"}});
  const Explanation free = ExplainNow(*limiter, anybody.check.request);
  EXPECT_EQ(free.policies.at(0).why, "unlimited: never refuses");
  EXPECT_EQ(free.policies.at(0).quota, "unlimited");
  Asked vip = Asked::For({{"user", "vip"}});
  const Explanation replaced = ExplainNow(*limiter, vip.check.request);
  ASSERT_THAT(replaced.policies, SizeIs(2));
  EXPECT_EQ(replaced.policies[1].quota, "unlimited");
  EXPECT_EQ(replaced.policies[1].why, "does not apply: the more specific policy 'vip' replaces it");
}

/// The explanation of one bucket of a policy.
Explanation ExplainOne(PolicyLimiter& limiter, policy::Definition definition, std::int64_t cost) {
  auto policy = std::make_shared<policy::Policy>();
  policy->definition = std::move(definition);
  Explanation told;
  ExplainBucket(limiter, policy, "default/p|user:1", cost,
                [&told](Explanation explanation) { told = std::move(explanation); });
  return told;
}

TEST(Explain, OneBucketOfOnePolicy) {
  World world;
  auto limiter = world.NewLimiter();
  policy::Definition definition;
  definition.name = "p";
  definition.source = "p.yaml:1:1";
  EXPECT_EQ(ExplainOne(*limiter, definition, 1).policies.at(0).why, "unlimited: never refuses");
  definition.quota = *Quota::FixedWindow(3, std::chrono::seconds(10));
  definition.cost = 2;
  EXPECT_EQ(ExplainOne(*limiter, definition, 1).why, "allowed by policy 'p'");
  // Two requests of cost 2 are 4 permits.
  EXPECT_EQ(ExplainOne(*limiter, definition, 2).decision.verdict, Verdict::kNever);
  definition.shadow = true;
  definition.shadow_in_file = false;
  const Explanation trial = ExplainOne(*limiter, definition, 1);
  EXPECT_EQ(trial.why, "allowed: only shadow policies apply");
  EXPECT_EQ(trial.policies.at(0).source, "p.yaml:1:1, in shadow by an override");
  definition.shadow = false;
  definition.shadow_in_file = true;
  EXPECT_EQ(ExplainOne(*limiter, definition, 1).policies.at(0).source,
            "p.yaml:1:1, enforced by an override");
}

TEST(Explain, ANegativeCostIsInvalid) {
  World world;
  auto limiter = world.NewLimiter();
  policy::Definition definition;
  definition.name = "p";
  definition.quota = *Quota::FixedWindow(3, std::chrono::seconds(10));
  const Explanation told = ExplainOne(*limiter, definition, -1);
  EXPECT_EQ(told.why, "invalid: the cost is negative");
  EXPECT_EQ(told.policies.at(0).why, "invalid: the cost is negative");
}

TEST(Explain, PoliciesOfOneNameInTwoDomainsAreToldApartAndARequestsOwnQuotaIsItsOwn) {
  World world(R"(
policies:
  - {name: a, match: {user: "*"}, quota: {fixed_window: {limit: 3, window: 10s}}}
)");
  policy::Definition other;
  other.domain = "api";
  other.name = "a";
  other.has_match = true;
  other.quota = *Quota::FixedWindow(9, std::chrono::seconds(10));
  other.source = "api.yaml:1:1";
  std::vector<policy::yaml::Problem> problems;
  std::vector<policy::Definition> both = {other};
  for (policy::Definition& one : policy::ParsePolicies(
           "policies: [{name: a, match: {user: '*'}, quota: {fixed_window: {limit: 3, window: "
           "10s}}}]",
           "p.yaml", problems)) {
    both.push_back(std::move(one));
  }
  policy::PolicyIds ids;
  const policy::LivePolicies live(
      *policy::PolicySet::Compile(both, {policy::DefaultPolicy(), 0.1}, ids));
  Shared shared(live, ids, Fallback::Options{.share = 0.1, .clock = &world.clock()});
  PolicyLimiter limiter(shared, std::make_unique<store::memory::MemoryStore>(world.engine()));
  Asked asked = Asked::For({{"user", "1"}});
  EXPECT_EQ(ExplainNow(limiter, asked.check.request).policies.at(0).source, "p.yaml:1:12");
  asked.check.request.domain = "api";
  EXPECT_EQ(ExplainNow(limiter, asked.check.request).policies.at(0).source, "api.yaml:1:1");
  const Quota own = *Quota::FixedWindow(50, std::chrono::seconds(1));
  const Quota* const overrides[] = {&own};
  asked.check.request.overrides = overrides;
  const Explanation told = ExplainNow(limiter, asked.check.request);
  EXPECT_EQ(told.policies.at(0).policy, "override");
  EXPECT_EQ(told.policies.at(0).source, "the request");
}

// 10 s minus a nanosecond is not yet enough after 9,999 ms.
TEST(Explain, TimesAreRoundedUp) {
  World world("policies: [{name: a, match: {}, quota: {fixed_window: {limit: 1, window: 10s}}}]");
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"user", "1"}});
  asked.On(*limiter);
  world.clock().Advance(std::chrono::nanoseconds(1));
  EXPECT_EQ(ExplainNow(*limiter, asked.check.request).why,
            "limited by policy 'a'; retry in 10000 ms");
}

}  // namespace
}  // namespace weir::limiter
