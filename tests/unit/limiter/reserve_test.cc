// Reservations through the policies: what is charged, what settling returns, and what happens if
// the policies or the store have changed in between.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "store/reserve/reservation.h"
#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using namespace std::chrono_literals;
using test::Asked;
using test::World;

constexpr std::string_view kPolicies = R"(
policies:
  - {name: day, match: {user: "*"}, quota: {fixed_window: {limit: 1000, window: 1d}}}
  - {name: heavy, match: {user: "*", model: large}, cost: 3, quota: {token_bucket: {capacity: 2000, refill: 1, period: 1s}}}
  - {name: trial, match: {user: "*"}, shadow: true, quota: {sliding_log: {limit: 100, window: 1h}}}
  - {name: at-once, match: {user: "*"}, quota: {concurrency: {limit: 1000, lease: 1h}}}
)";

class Reserving : public testing::Test {
 protected:
  std::string Reserve(std::int64_t cost, std::chrono::milliseconds lasts = 60s) {
    Asked asked = Asked::For({{"user", "42"}, {"model", "large"}}, cost);
    asked.check.reserve = lasts;
    const Check& check = asked.On(*limiter_);
    EXPECT_TRUE(check.status.ok());
    EXPECT_EQ(check.reservation.empty(), !check.decision.allowed());
    return check.reservation;
  }

  /// Whether this call settled it.
  bool Settle(const std::string& text, std::int64_t cost) {
    Asked asked = Asked::Key({}, cost, store::Op::kSettle);
    asked.check.settles = text;
    const Check& check = asked.On(*limiter_);
    EXPECT_TRUE(check.status.ok()) << check.status.error().message;
    standing_ = check.decision;
    policies_.clear();
    for (const PolicyVerdict& verdict : check.verdicts) policies_.emplace_back(verdict.policy);
    return check.applied;
  }

  std::int64_t LeftOf(std::string_view policy) {
    Asked peek = Asked::For({{"user", "42"}, {"model", "large"}}, 0, store::Op::kPeek);
    for (const PolicyVerdict& verdict : peek.On(*limiter_).verdicts) {
      if (verdict.policy == policy) return verdict.decision.remaining;
    }
    return -1;
  }

  World world_{kPolicies};
  std::unique_ptr<PolicyLimiter> limiter_ = world_.NewLimiter();
  Decision standing_;
  std::vector<std::string> policies_;
};

TEST_F(Reserving, LessIsGivenBackToEveryPolicyByItsOwnCost) {
  const std::string text = Reserve(100);
  EXPECT_EQ(LeftOf("day"), 900);
  EXPECT_EQ(LeftOf("heavy"), 1700);
  EXPECT_EQ(LeftOf("trial"), 0);
  EXPECT_TRUE(Settle(text, 30));
  EXPECT_EQ(LeftOf("day"), 970);
  EXPECT_EQ(LeftOf("heavy"), 1910);
  EXPECT_EQ(LeftOf("trial"), 70);
  EXPECT_EQ(policies_, (std::vector<std::string>{"day", "at-once", "heavy", "trial"}));
}

TEST_F(Reserving, WhatIsSettledLeavesNothingButTheBuckets) {
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Settle(Reserve(1, 24h), 1));
  EXPECT_EQ(world_.engine().size(), 4U);
}

TEST_F(Reserving, MoreIsChargedAndLeavesADebt) {
  const std::string text = Reserve(100);
  EXPECT_TRUE(Settle(text, 1200));
  EXPECT_EQ(LeftOf("day"), 0);
  EXPECT_EQ(standing_.verdict, Verdict::kLimited);
  EXPECT_TRUE(Reserve(1).empty());
}

TEST_F(Reserving, IsSettledOnce) {
  const std::string text = Reserve(100);
  EXPECT_TRUE(Settle(text, 0));
  EXPECT_FALSE(Settle(text, 0));
  EXPECT_FALSE(Settle(text, 500));
  EXPECT_EQ(LeftOf("day"), 1000);
}

TEST_F(Reserving, CountsAsSpentWhenItsTimeIsOver) {
  const std::string text = Reserve(100, 5s);
  world_.clock().Advance(5s);
  EXPECT_FALSE(Settle(text, 0));
  EXPECT_EQ(LeftOf("day"), 900);
}

TEST_F(Reserving, ReleasesWhatItHolds) {
  const std::string text = Reserve(2);
  EXPECT_EQ(LeftOf("at-once"), 998);
  EXPECT_TRUE(Settle(text, 1));
  EXPECT_EQ(LeftOf("at-once"), 1000);
}

TEST_F(Reserving, ARefusalChargesNothingThatIsEnforced) {
  EXPECT_TRUE(Reserve(700).empty());  // heavy: 2,100 of 2,000
  EXPECT_EQ(LeftOf("day"), 1000);
  EXPECT_EQ(LeftOf("heavy"), 2000);
}

// Charges are settled as they were made, whatever the policies are by then.
TEST_F(Reserving, SettlesUnderThePoliciesItWasMadeUnder) {
  const std::string text = Reserve(100);
  world_.Publish(R"(
policies:
  - {name: day, match: {user: "*"}, cost: 7, quota: {fixed_window: {limit: 5000, window: 1d}}}
)");
  EXPECT_TRUE(Settle(text, 30));
  EXPECT_EQ(LeftOf("day"), 4970);
}

TEST_F(Reserving, GoesTogetherWhereEachPolicyChargesForItself) {
  world_.Publish(R"(
charge: each
policies:
  - {name: day, match: {user: "*"}, overdraw: true, quota: {fixed_window: {limit: 1000, window: 1d}}}
  - {name: heavy, match: {user: "*"}, quota: {fixed_window: {limit: 50, window: 1d}}}
)");
  EXPECT_TRUE(Reserve(100).empty());
  EXPECT_EQ(LeftOf("day"), 1000);
  const std::string text = Reserve(50);
  EXPECT_TRUE(Settle(text, 10));
  EXPECT_EQ(LeftOf("heavy"), 40);
  EXPECT_EQ(LeftOf("day"), 990);
}

TEST_F(Reserving, WithoutALimitThereIsNothingToSettle) {
  world_.Publish("policies: []");
  const std::string text = Reserve(100);
  EXPECT_TRUE(Settle(text, 30));
}

TEST_F(Reserving, TextsThatAreNotOursAreRefused) {
  const std::string text = Reserve(10);
  for (const std::string& wrong :
       {std::string(), std::string("x"), text.substr(1), text.substr(0, text.size() - 4),
        text + "AAAA", std::string(20'000, 'A')}) {
    Asked asked = Asked::Key({}, 1, store::Op::kSettle);
    asked.check.settles = wrong;
    const Check& check = asked.On(*limiter_);
    ASSERT_FALSE(check.status.ok());
    EXPECT_EQ(check.status.error().code, Code::kInvalidArgument);
  }
  EXPECT_TRUE(Settle(text, 10));
}

TEST_F(Reserving, KeysThatAreTooLongForATextAreRefusedBeforeAnythingIsCharged) {
  world_.Publish(R"(
policies:
  - {name: a, match: {user: "*"}, quota: {fixed_window: {limit: 10, window: 1d}}}
  - {name: b, match: {user: "*"}, quota: {fixed_window: {limit: 10, window: 1d}}}
  - {name: c, match: {user: "*"}, quota: {fixed_window: {limit: 10, window: 1d}}}
  - {name: d, match: {user: "*"}, quota: {fixed_window: {limit: 10, window: 1d}}}
)");
  const std::string user(4000, 'u');
  Asked asked = Asked::For({{"user", user}});
  asked.check.reserve = 60s;
  EXPECT_FALSE(asked.On(*limiter_).status.ok());
  Asked peek = Asked::For({{"user", user}}, 0, store::Op::kPeek);
  EXPECT_EQ(peek.On(*limiter_).decision.remaining, 10);
}

TEST_F(Reserving, ManyAreDecidedTogetherAndOnlyTheirOwnAreSettled) {
  std::vector<Check> checks(4);
  for (std::size_t i = 0; i < checks.size(); ++i) {
    checks[i].request.key = i % 2 == 0 ? "a" : "b";
    if (i > 0) checks[i].reserve = 60s;
  }
  limiter_->Decide(checks, [] {});
  EXPECT_TRUE(checks[0].reservation.empty());
  for (std::size_t i = 1; i < checks.size(); ++i) EXPECT_FALSE(checks[i].reservation.empty());
  EXPECT_NE(checks[1].reservation, checks[3].reservation);
  EXPECT_TRUE(Settle(checks[1].reservation, 0));
  EXPECT_TRUE(Settle(checks[3].reservation, 0));
  EXPECT_FALSE(Settle(checks[3].reservation, 0));
}

TEST_F(Reserving, NeedsACostAndAChargeThatSucceeds) {
  Asked nothing = Asked::For({{"user", "42"}}, 0);
  nothing.check.reserve = 60s;
  ASSERT_FALSE(nothing.On(*limiter_).status.ok());
  EXPECT_EQ(nothing.check.status.error().code, Code::kInvalidArgument);
  EXPECT_TRUE(nothing.check.reservation.empty());
  // A peek reserves nothing.
  Asked look = Asked::For({{"user", "42"}}, 5, store::Op::kPeek);
  look.check.reserve = 60s;
  EXPECT_TRUE(look.On(*limiter_).status.ok());
  EXPECT_TRUE(look.check.reservation.empty());
  EXPECT_EQ(LeftOf("day"), 1000);
}

// 60 of the 100 of the shadow policy are used: it would deny, and has nothing to settle.
TEST_F(Reserving, APolicyOnTrialThatWouldRefuseIsLeftOut) {
  Reserve(60);
  const std::string text = Reserve(50);
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(LeftOf("trial"), 40);
  EXPECT_TRUE(Settle(text, 0));
  EXPECT_EQ(LeftOf("trial"), 40);
  EXPECT_EQ(LeftOf("day"), 940);
}

TEST_F(Reserving, DescriptorsOfOneBucketReserveItOnce) {
  world_.Publish(R"(
policies:
  - {name: day, match: {user: "*"}, quota: {fixed_window: {limit: 1000, window: 1d}}}
  - {name: trial, match: {user: "*"}, shadow: true, quota: {fixed_window: {limit: 1000, window: 1d}}}
  - {name: free, match: {plan: "*"}, unlimited: true}
)");
  const policy::Entry entries[] = {{"user", "42"}};
  const policy::Entry gold[] = {{"plan", "gold"}};
  const policy::Descriptor descriptors[] = {entries, entries, gold};
  Check check;
  check.request.descriptors = descriptors;
  check.request.cost = 10;
  check.reserve = 60s;
  limiter_->Decide(std::span(&check, 1), [] {});
  ASSERT_FALSE(check.reservation.empty());
  EXPECT_EQ(LeftOf("day"), 990);
  EXPECT_TRUE(Settle(check.reservation, 4));
  EXPECT_EQ(LeftOf("day"), 996);
  EXPECT_EQ(LeftOf("trial"), 996);
  EXPECT_EQ(policies_, (std::vector<std::string>{"day", "trial"}));
}

TEST_F(Reserving, ARequestsOwnQuotaIsSettledToo) {
  const Quota own = *Quota::FixedWindow(50, 1h);
  const Quota* const overrides[] = {&own};
  const auto left = [&] {
    Asked look = Asked::For({{"user", "42"}}, 0, store::Op::kPeek);
    look.check.request.overrides = overrides;
    return look.On(*limiter_).decision.remaining;
  };
  Asked asked = Asked::For({{"user", "42"}}, 20);
  asked.check.request.overrides = overrides;
  asked.check.reserve = 60s;
  const std::string text = asked.On(*limiter_).reservation;
  EXPECT_EQ(left(), 30);
  EXPECT_TRUE(Settle(text, 5));
  EXPECT_EQ(left(), 45);
  EXPECT_EQ(policies_, std::vector<std::string>{"override"});
}

// Weir never writes such a text; the next check is decided as usual.
TEST_F(Reserving, ATextWithAKeyThatNoBucketHasIsRefused) {
  store::reserve::Reservation forged = store::reserve::Begin(60s, 1);
  forged.groups.emplace_back().shares.push_back(
      {.key = std::string(5000, 'k'), .quota = *Quota::FixedWindow(9, 1h), .policy = "day"});
  forged.groups.front().lease = 7;
  const std::string text = store::reserve::Write(forged);
  ASSERT_TRUE(store::reserve::Read(text).ok());
  std::vector<Check> checks(2);
  checks[0].op = store::Op::kSettle;
  checks[0].settles = text;
  checks[1].request.key = "a";
  checks[1].reserve = 60s;
  limiter_->Decide(checks, [] {});
  ASSERT_FALSE(checks[0].status.ok());
  EXPECT_EQ(checks[0].status.error().code, Code::kInvalidArgument);
  EXPECT_TRUE(Settle(checks[1].reservation, 0));
}

// The id of a token bucket's charge in the store is not a permit that could be released.
TEST(ReservingBuckets, HoldNoPermits) {
  World world(R"(
policies:
  - {name: bucket, match: {user: "*"}, quota: {token_bucket: {capacity: 100, refill: 1, period: 1m}}}
)");
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For({{"user", "1"}}, 10);
  asked.check.reserve = 60s;
  const Check& check = asked.On(*limiter);
  EXPECT_FALSE(check.reservation.empty());
  EXPECT_EQ(check.decision.lease, 0);
  EXPECT_EQ(check.verdicts.at(0).decision.lease, 0);
}

// The clock stands still, so every total is exact.
TEST(ReservingConcurrently, OneOfManySettlementsCounts) {
  World world(R"(
policies:
  - {name: day, match: {user: "*"}, quota: {fixed_window: {limit: 1000000, window: 1d}}}
  - {name: bucket, match: {user: "*"}, quota: {token_bucket: {capacity: 1000000, refill: 1, period: 1m}}}
)");
  constexpr int kThreads = 4;
  constexpr int kReservations = 50;
  std::vector<std::string> texts;
  auto limiter = world.NewLimiter();
  for (int i = 0; i < kReservations; ++i) {
    Asked asked = Asked::For({{"user", "1"}}, 100);
    asked.check.reserve = 60s;
    texts.push_back(asked.On(*limiter).reservation);
  }
  std::atomic<int> settled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      auto own = world.NewLimiter();
      for (const std::string& text : texts) {
        Asked asked = Asked::Key({}, 40, store::Op::kSettle);
        asked.check.settles = text;
        if (asked.On(*own).applied) ++settled;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(settled.load(), kReservations);
  Asked peek = Asked::For({{"user", "1"}}, 0, store::Op::kPeek);
  for (const PolicyVerdict& verdict : peek.On(*limiter).verdicts) {
    EXPECT_EQ(verdict.decision.remaining, 1'000'000 - kReservations * 40) << verdict.policy;
  }
}

}  // namespace
}  // namespace weir::limiter
