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
    EXPECT_EQ(told.why, "limited by policy 'vip'; clears in 7500 ms");  // 10 s - 2.5 s
    ASSERT_THAT(told.policies, SizeIs(3));
    EXPECT_EQ(told.policies[0].policy, "vip");
    EXPECT_EQ(told.policies[0].key, "api/vip|user:vip");
    EXPECT_EQ(told.policies[0].source, "p.yaml:5:5");
    EXPECT_EQ(told.policies[0].why, "would limit: 0 of 1 left, enough again in 7500 ms");
    EXPECT_EQ(told.policies[1].policy, "trial");
    EXPECT_EQ(told.policies[1].why,
              "would allow: 5 of 5 left (shadow: counted, but blocks nothing)");
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

}  // namespace
}  // namespace weir::limiter
