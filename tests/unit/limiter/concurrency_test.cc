#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using test::Asked;
using test::World;

// The clock stands still, so every total is exact.
TEST(LimiterConcurrency, ManyThreadsAndSeveralPoliciesGiveExactTotalsAndNoPartialCharges) {
  constexpr int kThreads = 4;
  constexpr int kUsers = 5;
  constexpr int kRounds = 400;
  World world(R"(
policies:
  - {name: user, match: {user: "*"}, quota: {fixed_window: {limit: 300, window: 1d}}}
  - {name: route, match: {user: "*", route: "*"}, quota: {token_bucket: {capacity: 200, refill: 1, period: 1d}}}
  - {name: all, match: {}, quota: {sliding_counter: {limit: 1000, window: 1d}}}
)");
  std::atomic<std::int64_t> granted{0};
  std::vector<std::atomic<std::int64_t>> by_user(kUsers);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      auto limiter = world.NewLimiter();
      for (int i = 0; i < kRounds; ++i) {
        const int user = (i + t) % kUsers;
        const std::string name = std::to_string(user);
        const std::string route = (i / kUsers) % 2 == 0 ? "/a" : "/b";
        if (Asked::For({{"user", name}, {"route", route}}).On(*limiter).decision.allowed()) {
          ++granted;
          ++by_user[static_cast<std::size_t>(user)];
        }
        if (i % 50 == 0) world.shared().counters.Policies();  // a scrape in between
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  // 4 x 400 = 1,600 checks. Every thread cycles through the 5 users evenly, so when "all" has
  // granted its 1,000 no user has had more than 1,000 / 5 + 4 = 204 of 300, nor 200 on one route:
  // only "all" denies.
  EXPECT_EQ(granted.load(), 1000);
  // Each policy was charged what was granted: a denial by "all" charged no other.
  auto limiter = world.NewLimiter();
  for (int user = 0; user < kUsers; ++user) {
    const std::string name = std::to_string(user);
    Asked peek = Asked::For({{"user", name}}, 0, store::Op::kPeek);
    peek.On(*limiter);
    std::int64_t left = -1;
    for (const PolicyVerdict& verdict : peek.check.verdicts) {
      if (verdict.policy == "user") left = verdict.decision.remaining;
    }
    EXPECT_EQ(left, 300 - by_user[static_cast<std::size_t>(user)].load());
  }
  EXPECT_EQ(world.CountsOf("all").allowed, 1000U);
  EXPECT_EQ(world.CountsOf("all").limited, 600U);
  EXPECT_EQ(world.CountsOf("user").allowed, 1000U);
  EXPECT_EQ(world.shared().counters.Checks().allowed, 1000U);
  EXPECT_EQ(world.shared().counters.Checks().limited, 600U);
}

TEST(LimiterConcurrency, PoliciesMayChangeWhileChecksRun) {
  World world(
      "policies: [{name: a, match: {}, quota: {fixed_window: {limit: 1000000, window: 1d}}}]");
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> named{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      auto limiter = world.NewLimiter();
      while (!stop.load()) {
        Asked asked = Asked::For({});
        named += asked.On(*limiter).policy == "a" ? 1 : 0;
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    world.Publish(
        "policies: [{name: a, match: {}, quota: {fixed_window: {limit: 1000000, window: 1d}}}]");
  }
  const std::int64_t seen = named.load();
  while (named.load() == seen) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(named.load(), static_cast<std::int64_t>(world.CountsOf("a").allowed));
}

}  // namespace
}  // namespace weir::limiter
