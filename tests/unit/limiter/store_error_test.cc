#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "limiter/explain.h"
#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using namespace std::chrono_literals;
using store::Op;
using test::Asked;
using test::World;
using ::testing::SizeIs;

/// A store that answers when the test says, or never.
class DistantStore final : public store::Store {
 public:
  void Apply(std::span<store::Application> batch, store::Done done) override {
    if (!down) {
      pending.push_back({batch, std::move(done)});
      return;
    }
    for (store::Application& application : batch) {
      application.status = error;
    }
    done();
  }

  struct Pending {
    std::span<store::Application> batch;
    store::Done done;
  };
  bool down = false;
  Error error{Code::kUnavailable, "the store is down"};
  std::vector<Pending> pending;
};

class StoreErrorTest : public ::testing::Test {
 protected:
  void Start(std::string_view policies) {
    world_ = std::make_unique<World>(policies);
    auto store = std::make_unique<DistantStore>();
    store_ = store.get();
    limiter_ = std::make_unique<PolicyLimiter>(world_->shared(), std::move(store));
    store_->down = true;
  }

  std::unique_ptr<World> world_;
  DistantStore* store_ = nullptr;
  std::unique_ptr<PolicyLimiter> limiter_;
};

TEST_F(StoreErrorTest, AllowLetsPassAndSaysSo) {
  Start(
      "policies: [{name: a, match: {}, on_store_error: allow, quota: {fixed_window: {limit: 1, "
      "window: 1s}}}]");
  for (int i = 0; i < 3; ++i) {
    Asked asked = Asked::For({});
    EXPECT_TRUE(asked.On(*limiter_).decision.allowed());
    EXPECT_TRUE(asked.check.degraded);
    EXPECT_TRUE(asked.check.status.ok());
  }
  EXPECT_EQ(world_->CountsOf("a").errors, 3U);
  EXPECT_EQ(world_->shared().counters.Checks().degraded, 3U);
}

TEST_F(StoreErrorTest, DenyRefusesAndSaysWhenToAskAgain) {
  Start(
      "policies: [{name: a, match: {}, on_store_error: deny, quota: {fixed_window: {limit: 9, "
      "window: 1s}}}]");
  Asked asked = Asked::For({});
  EXPECT_EQ(asked.On(*limiter_).decision.verdict, Verdict::kLimited);
  EXPECT_TRUE(asked.check.degraded);
  EXPECT_TRUE(asked.check.status.ok());
  EXPECT_EQ(asked.check.decision.retry_after, 1s);
  EXPECT_EQ(asked.check.decision.limit, 9);
}

TEST_F(StoreErrorTest, LocalGrantsTheShareOfThisProcess) {
  // A tenth of 20 is 2 for each user.
  Start(
      "policies: [{name: a, match: {user: '*'}, quota: {fixed_window: {limit: 20, window: 10s}}}]");
  for (const char* user : {"1", "2"}) {
    EXPECT_TRUE(Asked::For({{"user", user}}).On(*limiter_).decision.allowed());
    EXPECT_TRUE(Asked::For({{"user", user}}).On(*limiter_).decision.allowed());
    EXPECT_FALSE(Asked::For({{"user", user}}).On(*limiter_).decision.allowed());
  }
  // 5 permits fit into the quota but not into the share: that is not a kNever.
  EXPECT_EQ(Asked::For({{"user", "3"}}, 5).On(*limiter_).decision.verdict, Verdict::kLimited);
}

// Policies of a store that this process does not have, along with one whose store answers.
class UnableTest : public ::testing::Test {
 protected:
  void Start(std::string_view policies) {
    std::vector<policy::yaml::Problem> problems;
    auto definitions = policy::ParsePolicies(policies, "p.yaml", problems);
    ASSERT_EQ(policy::yaml::ToString(problems), "");
    policy::CompileOptions options{policy::DefaultPolicy()};
    options.stores = std::vector<std::string>{"main"};
    EXPECT_FALSE(policy::PolicySet::Compile(definitions, options, ids_).ok());
    options.tolerant = true;
    live_.emplace(*policy::PolicySet::Compile(std::move(definitions), options, ids_));
    shared_.emplace(*live_, ids_, Fallback::Options{.share = 0.1, .clock = &world_.clock()});
    limiter_ = std::make_unique<PolicyLimiter>(
        *shared_, std::make_unique<store::memory::MemoryStore>(world_.engine()));
  }

  World world_;
  policy::PolicyIds ids_;
  std::optional<policy::LivePolicies> live_;
  std::optional<Shared> shared_;
  std::unique_ptr<PolicyLimiter> limiter_;
};

TEST_F(UnableTest, APolicyWithoutItsStoreIsDecidedByOnStoreErrorAndOthersByTheStore) {
  Start(
      "policies: ["
      "{name: denied, match: {a: '*'}, store: hot, on_store_error: deny, "
      "quota: {fixed_window: {limit: 20, window: 10s}}}, "
      "{name: shared, match: {b: '*'}, store: hot, "
      "quota: {fixed_window: {limit: 20, window: 10s}}}, "
      "{name: fine, match: {c: '*'}, store: main, quota: {fixed_window: {limit: 3, window: "
      "10s}}}]");
  const auto admitted = [this](const char* entry) {
    int count = 0;
    for (int i = 0; i < 30; ++i)
      count += Asked::For({{entry, "1"}}).On(*limiter_).decision.allowed();
    return count;
  };
  EXPECT_EQ(admitted("a"), 0);
  EXPECT_EQ(admitted("b"), 2);
  EXPECT_EQ(admitted("c"), 3);
  // Nothing was charged in a store that the policy does not name.
  Asked denied = Asked::For({{"a", "1"}});
  EXPECT_TRUE(denied.On(*limiter_).degraded);
  EXPECT_EQ(world_.engine().size(), 1U);
  // Together all or none: the one that could be charged is not, if the other denies.
  EXPECT_FALSE(Asked::For({{"a", "2"}, {"c", "2"}}).On(*limiter_).decision.allowed());
  EXPECT_EQ(Asked::For({{"c", "2"}}).On(*limiter_).decision.remaining, 2);
  // Operations other than checks cannot be guessed.
  Asked refund = Asked::For({{"b", "1"}}, 1, Op::kRefund);
  EXPECT_EQ(refund.On(*limiter_).status.error().code, Code::kUnavailable);
  EXPECT_THAT(refund.check.status.error().message, ::testing::HasSubstr("unknown store 'hot'"));
  // Many checks in one batch keep their own answers.
  Asked one = Asked::For({{"a", "3"}});
  Asked two = Asked::For({{"c", "3"}});
  std::vector<Check> both{one.check, two.check, one.check, two.check};
  limiter_->Decide(both, [] {});
  EXPECT_FALSE(both[0].decision.allowed());
  EXPECT_EQ(both[1].decision.remaining, 2);
  EXPECT_FALSE(both[2].decision.allowed());
  EXPECT_EQ(both[3].decision.remaining, 1);
}

TEST_F(UnableTest, ExplainNamesTheReason) {
  Start(
      "policies: [{name: p, match: {a: '*'}, store: hot, "
      "quota: {fixed_window: {limit: 20, window: 10s}}}]");
  Asked asked = Asked::For({{"a", "1"}});
  std::string why;
  Explain(*limiter_, asked.check.request,
          [&why](const Explanation& told) { why = told.policies.at(0).why; });
  EXPECT_THAT(why, ::testing::HasSubstr("this node cannot apply it: p.yaml:1:12: policy 'p': "
                                        "unknown store 'hot'; the stores are main"));
}

// The rows of docs/reference/bounds.md: two nodes that cannot reach the store, a limit of 100, a
// share of a tenth.
TEST_F(StoreErrorTest, TheBoundOfEachModeHolds) {
  const auto admitted = [this](const std::string& mode) {
    int count = 0;
    for (int node = 0; node < 2; ++node) {
      Start("policies: [{name: a, match: {}, on_store_error: " + mode +
            ", quota: {fixed_window: {limit: 100, window: 100d}}}]");
      for (int i = 0; i < 500; ++i) count += Asked::For({}).On(*limiter_).decision.allowed();
    }
    return count;
  };
  EXPECT_EQ(admitted("deny"), 0);
  EXPECT_EQ(admitted("local"), 2 * 10);
  EXPECT_EQ(admitted("allow"), 2 * 500);
}

// A tenth of 100 permits at first and of one a second: 20 in the 100 s in which the quota grants
// 200. So with more than ten nodes, the refill in total exceeds the rate.
TEST_F(StoreErrorTest, ATokenBucketsShareIsAPartOfItsRateAsWell) {
  Start(R"(
policies: [{name: a, match: {}, quota: {token_bucket: {capacity: 100, refill_per_second: 1}}}]
)");
  int count = 0;
  for (int tens = 0; tens <= 10; ++tens) {
    for (int i = 0; i < 50; ++i) count += Asked::For({}).On(*limiter_).decision.allowed();
    world_->clock().Advance(10s);
  }
  EXPECT_EQ(count, 10 + 10);
}

// A client that can make undecidable requests would get the local share in addition to the quota.
TEST_F(StoreErrorTest, WhatOnlyThisRequestMetIsRefusedUnlessThePolicyAllows) {
  Start(R"(
policies:
  - {name: local, match: {user: "*"}, quota: {fixed_window: {limit: 20, window: 10s}}}
  - {name: allow, match: {ip: "*"}, on_store_error: allow, quota: {fixed_window: {limit: 1, window: 1s}}}
)");
  for (const Code code : {Code::kInternal, Code::kFailedPrecondition, Code::kAlreadyExists}) {
    store_->error = {code, "the row is damaged"};
    Asked local = Asked::For({{"user", "1"}});
    EXPECT_EQ(local.On(*limiter_).decision.verdict, Verdict::kLimited);
    EXPECT_TRUE(local.check.degraded);
    EXPECT_EQ(local.check.degraded_by, "deny");
    Asked allow = Asked::For({{"ip", "::1"}});
    EXPECT_TRUE(allow.On(*limiter_).decision.allowed());
    EXPECT_EQ(allow.check.degraded_by, "allow");
    // Together: the strictest.
    EXPECT_FALSE(Asked::For({{"user", "1"}, {"ip", "::1"}}).On(*limiter_).decision.allowed());
  }
  // A store that is only overloaded counts as down.
  store_->error = {Code::kResourceExhausted, "too many checks are waiting"};
  EXPECT_TRUE(Asked::For({{"user", "1"}}).On(*limiter_).decision.allowed());
}

TEST_F(StoreErrorTest, OnePolicyThatDeniesKeepsTheLocalOnesUncharged) {
  Start(R"(
policies:
  - {name: local, match: {user: "*"}, quota: {fixed_window: {limit: 10, window: 10s}}}
  - {name: deny, match: {user: "*", route: /pay}, on_store_error: deny, quota: {fixed_window: {limit: 9, window: 1s}}}
)");
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(Asked::For({{"user", "1"}, {"route", "/pay"}}).On(*limiter_).decision.allowed());
  }
  EXPECT_TRUE(
      Asked::For({{"user", "1"}}).On(*limiter_).decision.allowed());  // the share of 1 is untouched
  EXPECT_FALSE(Asked::For({{"user", "1"}}).On(*limiter_).decision.allowed());
}

TEST_F(StoreErrorTest, ShadowNeverBlocksHereEither) {
  Start(
      "policies: [{name: a, match: {}, shadow: true, on_store_error: deny, quota: {fixed_window: "
      "{limit: 9, window: 1s}}}]");
  Asked asked = Asked::For({});
  EXPECT_TRUE(asked.On(*limiter_).decision.allowed());
  ASSERT_THAT(asked.check.verdicts, SizeIs(1));
  EXPECT_FALSE(asked.check.verdicts[0].decision.allowed());
}

TEST_F(StoreErrorTest, WhatCannotBeGivenBackIsAnError) {
  Start(
      "policies: [{name: a, match: {}, on_store_error: allow, quota: {fixed_window: {limit: 9, "
      "window: 1s}}}]");
  Asked asked = Asked::For({}, 1, Op::kRefund);
  asked.On(*limiter_);
  ASSERT_FALSE(asked.check.status.ok());
  EXPECT_EQ(asked.check.status.error().code, Code::kUnavailable);
  EXPECT_FALSE(asked.check.applied);
}

TEST_F(StoreErrorTest, AnswersMayComeLaterAndInAnyOrder) {
  Start("policies: [{name: a, match: {user: '*'}, quota: {fixed_window: {limit: 9, window: 1s}}}]");
  store_->down = false;
  Asked first = Asked::For({{"user", "1"}});
  Asked second = Asked::For({{"user", "2"}});
  int told = 0;
  limiter_->Decide(std::span(&first.check, 1), [&] { told += 1; });
  limiter_->Decide(std::span(&second.check, 1), [&] { told += 10; });
  ASSERT_THAT(store_->pending, SizeIs(2));
  EXPECT_EQ(told, 0);
  world_->Publish("");  // the old policies must live until their checks are answered
  for (int i : {1, 0}) {
    auto& pending = store_->pending[static_cast<std::size_t>(i)];
    ASSERT_THAT(pending.batch, SizeIs(1));
    ASSERT_THAT(pending.batch[0].charges, SizeIs(1));
    EXPECT_EQ(pending.batch[0].charges[0].key, i == 0 ? "default/a|user:1" : "default/a|user:2");
    pending.batch[0].decisions[0].remaining = i + 100;
    pending.batch[0].applied = true;
    pending.done();
  }
  EXPECT_EQ(told, 11);
  EXPECT_EQ(first.check.decision.remaining, 100);
  EXPECT_EQ(second.check.decision.remaining, 101);
}

// More than the number kept for reuse.
TEST_F(StoreErrorTest, AnyNumberOfAnswersMayBeOutstanding) {
  Start("policies: [{name: a, match: {user: '*'}, quota: {fixed_window: {limit: 9, window: 1s}}}]");
  store_->down = false;
  std::vector<Check> checks(100);
  const policy::Entry entry{"user", "1"};
  const policy::Descriptor descriptor(&entry, 1);
  std::vector<store::Application> given(100);
  int told = 0;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    checks[i].request.descriptors = {&descriptor, 1};
    limiter_->Decide({&checks[i], 1}, [&told] { ++told; });
    given[i].op = Op::kPeek;
    limiter_->Apply({&given[i], 1}, [&told] { ++told; });
  }
  ASSERT_THAT(store_->pending, SizeIs(200));
  for (std::size_t i = 0; i < 200; ++i) {
    DistantStore::Pending& pending = store_->pending[i];
    if (!pending.batch[0].decisions.empty()) {
      pending.batch[0].decisions[0].remaining = static_cast<std::int64_t>(i);
    }
    pending.done();
  }
  EXPECT_EQ(told, 200);
  for (std::size_t i = 0; i < checks.size(); ++i) {
    EXPECT_EQ(checks[i].decision.remaining, static_cast<std::int64_t>(2 * i));
  }
}

TEST_F(StoreErrorTest, APermitThatWasGrantedHereIsGivenBackHere) {
  Start(
      "policies: [{name: a, match: {}, on_store_error: local, quota: "
      "{concurrency: {limit: 10, lease: 1h}}}]");
  Asked asked = Asked::For({});
  ASSERT_TRUE(asked.On(*limiter_).decision.allowed());  // a tenth of 10 is 1
  std::string text;
  AppendPermits(text, asked.check);
  EXPECT_FALSE(asked.On(*limiter_).decision.allowed());
  Asked release = Asked::For({}, 1, Op::kRelease);
  ASSERT_TRUE(ParsePermits(text, release.check.permits).ok());
  EXPECT_TRUE(release.On(*limiter_).applied);
  EXPECT_TRUE(release.check.status.ok());
  EXPECT_TRUE(asked.On(*limiter_).decision.allowed());
  // A permit not held here may be held in the store, which cannot be determined now.
  release.On(*limiter_);
  EXPECT_FALSE(release.check.applied);
  ASSERT_FALSE(release.check.status.ok());
  EXPECT_EQ(release.check.status.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace weir::limiter
