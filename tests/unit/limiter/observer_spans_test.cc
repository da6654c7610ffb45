// The spans of decisions, and what policies have left.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "limiter/observer.h"
#include "unit/limiter/observed.h"

namespace weir::limiter {
namespace {

using namespace std::chrono_literals;
using store::Op;
using telemetry::Span;
using telemetry::Tracer;
using test::AbsentStore;
using test::Asked;
using test::Observed;
using test::OwnCharge;
using test::TextOf;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(Observed, ASampledCheckHasASpanForTheDecisionAndOneForTheStore) {
  world_.shared().observe.tracer = &tracer_;
  world_.shared().observe.store = "redis";
  auto limiter = world_.NewLimiter();
  Asked asked = Asked::For({{"user", "42"}});
  asked.check.origin.trace = Sampled();
  asked.On(*limiter);
  const std::vector<Span> spans = Spans();
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_EQ(spans[0].name, "weir.decide");
  EXPECT_EQ(spans[0].context.parent, 2U);
  EXPECT_EQ(spans[0].context.trace_high, 0x0123456789abcdefU);
  EXPECT_FALSE(spans[0].failed);
  EXPECT_LE(spans[0].start, spans[0].end);
  EXPECT_EQ(TextOf(spans[0], "weir.key"), "user:42");
  EXPECT_EQ(TextOf(spans[0], "weir.policy"), "one");
  EXPECT_EQ(TextOf(spans[0], "weir.outcome"), "allowed");
  EXPECT_EQ(TextOf(spans[0], "weir.limit"), "1");
  EXPECT_EQ(TextOf(spans[0], "weir.remaining"), "0");
  EXPECT_EQ(spans[1].name, "weir.store");
  EXPECT_EQ(spans[1].kind, Span::Kind::kClient);
  EXPECT_EQ(TextOf(spans[1], "db.system"), "redis");
}

TEST_F(Observed, ACheckThatIsNotSampledHasNone) {
  world_.shared().observe.tracer = &tracer_;
  auto limiter = world_.NewLimiter();
  Asked::For({{"user", "42"}}).On(*limiter);
  EXPECT_THAT(Spans(), IsEmpty());
  Tracer never({.ratio = 0.0});
  world_.shared().observe.tracer = &never;
  auto other = world_.NewLimiter();
  OwnCharge own;
  own.On(*other);
  std::vector<Span> spans;
  never.Take(spans, 10);
  EXPECT_THAT(spans, IsEmpty());
}

TEST_F(Observed, WhereTheStoreWasNotAskedThereIsOneSpanAndAFailureSaysNoOutcome) {
  world_.shared().observe.tracer = &tracer_;
  auto limiter = world_.NewLimiter();
  Asked asked = Asked::For({{"user", "1"}}, 0);
  asked.check.reserve = 1s;  // requires a cost
  asked.check.origin.trace = Sampled();
  asked.On(*limiter);
  const std::vector<Span> spans = Spans();
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_TRUE(spans[0].failed);
  EXPECT_EQ(TextOf(spans[0], "weir.outcome"), std::nullopt);
}

TEST_F(Observed, WhatAPolicyHasLeftIsKeptOfTheLastCharge) {
  world_.shared().observe.remaining = true;
  world_.Publish(R"(
policies:
  - {name: ten, match: {user: "*"}, quota: {fixed_window: {limit: 10, window: 10s}}}
  - {name: free, match: {plan: "*"}, unlimited: true}
)");
  auto limiter = world_.NewLimiter();
  EXPECT_EQ(world_.CountsOf("ten").remaining, std::nullopt);
  Asked::For({{"user", "1"}, {"plan", "gold"}}, 4).On(*limiter);
  EXPECT_EQ(world_.CountsOf("ten").remaining, 6U);
  EXPECT_EQ(world_.CountsOf("free").remaining, std::nullopt) << "it limits nothing";
  // Neither a peek nor an undecided check changes it.
  Asked::For({{"user", "2"}}, 1, Op::kPeek).On(*limiter);
  Asked undecided = Asked::For({{"user", "2"}}, 0);
  undecided.check.reserve = 1s;  // requires a cost
  undecided.On(*limiter);
  EXPECT_EQ(world_.CountsOf("ten").remaining, 6U);
  Asked::For({{"user", "2"}}, 1).On(*limiter);
  EXPECT_EQ(world_.CountsOf("ten").remaining, 9U);
}

TEST_F(Observed, NeitherAnOverrideNorADecisionWithoutTheStoreCounts) {
  world_.shared().observe.remaining = true;
  auto limiter = world_.NewLimiter();
  const Quota own = *Quota::FixedWindow(50, 1s);
  const Quota* const overrides[] = {&own};
  Asked asked = Asked::For({{"user", "1"}});
  asked.check.request.overrides = overrides;
  EXPECT_EQ(asked.On(*limiter).decision.remaining, 49);
  PolicyLimiter cut_off(world_.shared(), std::make_unique<AbsentStore>());
  EXPECT_TRUE(Asked::For({{"user", "1"}}).On(cut_off).degraded);
  EXPECT_EQ(world_.CountsOf("one").remaining, std::nullopt);
}

}  // namespace
}  // namespace weir::limiter
