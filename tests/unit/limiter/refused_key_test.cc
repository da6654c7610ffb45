// Whose allowance is used up, as reported to a denied caller.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "limiter/limiter.h"
#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using test::Asked;
using test::World;

constexpr std::string_view kPolicies = R"(
policies:
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 1h}}}
  - {name: per-page, match: {user: "*", route: "*"}, quota: {fixed_window: {limit: 1, window: 1h}}}
  - {name: per-secret, match: {api_key: "*"}, quota: {fixed_window: {limit: 1, window: 1h}}}
  - {name: all, match: {}, quota: {fixed_window: {limit: 1000, window: 1h}}}
)";

/// The key reported for the second of two equal requests.
std::string Told(Limiter& limiter, Asked& asked) {
  EXPECT_TRUE(asked.On(limiter).decision.allowed());
  EXPECT_FALSE(asked.On(limiter).decision.allowed());
  return RefusedKey(asked.check);
}

TEST(RefusedKey, IsTheBareKey) {
  World world("policies: [{name: a, key: ada, quota: {fixed_window: {limit: 1, window: 1h}}}]");
  auto limiter = world.NewLimiter();
  Asked asked = Asked::Key("ada");
  EXPECT_EQ(Told(*limiter, asked), "ada");
}

TEST(RefusedKey, IsTheValueOfTheOneEntryThatThePolicyCountsBy) {
  World world(kPolicies);
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"ip", "::1"}, {"user", "42"}});
  EXPECT_EQ(Told(*limiter, asked), "42");
}

TEST(RefusedKey, NamesTheEntriesIfThereAreSeveral) {
  World world(kPolicies);
  auto limiter = world.NewLimiter();
  // The user's own policy would come first; it does not match this request.
  world.Publish(R"(
policies:
  - {name: per-page, match: {user: "*", route: "*"}, quota: {fixed_window: {limit: 1, window: 1h}}}
)");
  Asked asked = Asked::For({{"user", "42"}, {"ip", "::1"}, {"route", "/v1/pay"}});
  EXPECT_EQ(Told(*limiter, asked), "user:42|route:/v1/pay");
}

TEST(RefusedKey, LeavesAnApiKeyOut) {
  World world(kPolicies);
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"api_key", "secret"}});
  EXPECT_EQ(Told(*limiter, asked), "(api key)");
}

TEST(RefusedKey, IsThatOfThePolicyThatDecided) {
  World world(R"(
policies:
  - {name: trial, match: {ip: "*"}, shadow: true, quota: {fixed_window: {limit: 1, window: 1h}}}
  - {name: short, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 1s}}}
  - {name: long, match: {route: "*"}, quota: {fixed_window: {limit: 1, window: 1h}}}
  - {name: wide, match: {plan: "*"}, quota: {fixed_window: {limit: 9, window: 1h}}}
)");
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"ip", "::1"}, {"plan", "gold"}, {"user", "42"}, {"route", "/pay"}});
  EXPECT_EQ(Told(*limiter, asked), "/pay") << "the longest wait is the answer";
}

TEST(RefusedKey, IsEmptyWhereAPolicyForEverybodyRefuses) {
  World world("policies: [{name: all, match: {}, quota: {fixed_window: {limit: 1, window: 1h}}}]");
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"user", "42"}});
  EXPECT_EQ(Told(*limiter, asked), "");
}

TEST(RefusedKey, IsTheSubjectOfAPolicyForOneKey) {
  World world(
      "policies: [{name: office, key: 10.0.0.1, quota: {fixed_window: {limit: 1, window: 1h}}}]");
  auto limiter = world.NewLimiter();
  const std::vector<policy::Entry> subjects = {{"user", "42"}, {"ip", "10.0.0.1"}};
  Asked asked = Asked::For({{"user", "42"}, {"ip", "10.0.0.1"}});
  asked.check.request.subjects = subjects;
  EXPECT_EQ(Told(*limiter, asked), "10.0.0.1");
}

TEST(RefusedKey, OfASubjectThatIsAnApiKeyIsLeftOutToo) {
  World world(
      "policies: [{name: office, key: secret, quota: {fixed_window: {limit: 1, window: 1h}}}]");
  auto limiter = world.NewLimiter();
  const std::vector<policy::Entry> subjects = {{"api_key", "secret"}};
  Asked asked = Asked::For({{"api_key", "secret"}});
  asked.check.request.subjects = subjects;
  EXPECT_EQ(Told(*limiter, asked), "(api key)");
}

TEST(RefusedKey, IsNothingOfARequestsOwnQuota) {
  World world(kPolicies);
  auto limiter = world.NewLimiter();
  const Quota own = *Quota::FixedWindow(1, std::chrono::hours(1));
  const Quota* const overrides[] = {&own};
  Asked asked = Asked::For({{"user", "42"}});
  asked.check.request.overrides = overrides;
  EXPECT_EQ(Told(*limiter, asked), "");
}

TEST(RefusedKey, IsCutWhereItIsLong) {
  World world(kPolicies);
  auto limiter = world.NewLimiter();
  const std::string user(300, 'u');
  Asked asked = Asked::For({{"user", user}});
  EXPECT_EQ(Told(*limiter, asked), user.substr(0, 256));
}

TEST(RefusedKey, OfARequestWithoutDescriptorsIsEmpty) {
  World world("policies: [{name: all, match: {}, quota: {fixed_window: {limit: 1, window: 1h}}}]");
  auto limiter = world.NewLimiter();
  Check check;
  limiter->Decide(std::span(&check, 1), [] {});
  EXPECT_TRUE(check.decision.allowed());
  limiter->Decide(std::span(&check, 1), [] {});
  EXPECT_EQ(check.policy, "all") << "a policy for everybody applies to whoever says nothing";
  EXPECT_FALSE(check.decision.allowed());
  EXPECT_EQ(RefusedKey(check), "");
}

}  // namespace
}  // namespace weir::limiter
