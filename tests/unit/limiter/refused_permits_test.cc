// Permits in flight that were granted to a check which is denied in the end.

#include <gtest/gtest.h>

#include <string>

#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using test::Asked;
using test::World;

std::int64_t InFlight(Limiter& limiter, std::string_view policy) {
  Asked peek = Asked::For({{"user", "a"}}, 0, store::Op::kPeek);
  peek.On(limiter);
  for (const PolicyVerdict& verdict : peek.check.verdicts) {
    if (verdict.policy == policy) return verdict.decision.limit - verdict.decision.remaining;
  }
  ADD_FAILURE() << policy;
  return -1;
}

TEST(RefusedPermits, OfAPolicyThatIsChargedOnItsOwnAreReleased) {
  World world(R"(
charge: each
policies:
  - {name: jobs, match: {user: "*"}, quota: {concurrency: {limit: 5, lease: 1h}}}
  - {name: rate, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 1d}}}
)");
  auto limiter = world.NewLimiter();
  EXPECT_TRUE(Asked::For({{"user", "a"}}).On(*limiter).decision.allowed());
  EXPECT_EQ(InFlight(*limiter, "jobs"), 1);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(Asked::For({{"user", "a"}}).On(*limiter).decision.allowed());
  }
  EXPECT_EQ(InFlight(*limiter, "jobs"), 1);
}

TEST(RefusedPermits, OfAPolicyOnTrialAreReleased) {
  World world(R"(
policies:
  - {name: jobs, match: {user: "*"}, shadow: true, quota: {concurrency: {limit: 5, lease: 1h}}}
  - {name: rate, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 1d}}}
)");
  auto limiter = world.NewLimiter();
  EXPECT_TRUE(Asked::For({{"user", "a"}}).On(*limiter).decision.allowed());
  EXPECT_FALSE(Asked::For({{"user", "a"}}).On(*limiter).decision.allowed());
  EXPECT_EQ(InFlight(*limiter, "jobs"), 1);
}

TEST(RefusedPermits, OfChecksThatAreAdmittedStay) {
  World world(R"(
policies:
  - {name: jobs, match: {user: "*"}, quota: {concurrency: {limit: 2, lease: 1h}}}
  - {name: rate, match: {user: "*"}, quota: {fixed_window: {limit: 9, window: 1d}}}
)");
  auto limiter = world.NewLimiter();
  for (int i = 0; i < 5; ++i) Asked::For({{"user", "a"}}).On(*limiter);
  EXPECT_EQ(InFlight(*limiter, "jobs"), 2);
}

}  // namespace
}  // namespace weir::limiter
