// How decisions are reported besides the counters: log lines, spans, and what policies have left.

#include "limiter/observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/tracer.h"
#include "unit/limiter/fixture.h"

namespace weir::limiter {
namespace {

using namespace std::chrono_literals;
using store::Op;
using telemetry::Span;
using telemetry::Tracer;
using test::Asked;
using test::World;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::string_view kOne = R"(
policies:
  - {name: one, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 10s}}}
  - {name: free, match: {plan: "*"}, unlimited: true}
)";

/// A store that is down.
class AbsentStore final : public store::Store {
 public:
  void Apply(std::span<store::Application> batch, store::Done done) override {
    for (store::Application& application : batch) {
      application.status = Error{Code::kUnavailable, "the store is down"};
    }
    done();
  }
};

std::optional<std::string> TextOf(const Span& span, std::string_view name) {
  for (std::size_t i = 0; i < span.size(); ++i) {
    const Span::Attribute& attribute = span.attribute(i);
    if (attribute.name != name) continue;
    return attribute.text ? std::string(span.TextOf(attribute)) : std::to_string(attribute.number);
  }
  return std::nullopt;
}

class Observed : public testing::Test {
 protected:
  Observed() { EXPECT_EQ(pipe(pipe_.data()), 0); }
  ~Observed() override {
    telemetry::FlushLog();
    telemetry::ConfigureLog({});
    close(pipe_[0]);
    close(pipe_[1]);
  }

  void LogFrom(telemetry::Level level) {
    telemetry::ConfigureLog(
        {.level = level, .format = telemetry::LogFormat::kJson, .fd = pipe_[1]});
  }
  /// What was logged since the last call. A line added by this function keeps the pipe from being
  /// empty.
  std::string Logged() {
    telemetry::Log(telemetry::Level::kError, "end");
    telemetry::FlushLog();
    std::string text(65536, '\0');
    const ssize_t n = read(pipe_[0], text.data(), text.size());
    text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return text;
  }
  std::vector<Span> Spans() {
    std::vector<Span> spans;
    tracer_.Take(spans, 100);
    return spans;
  }
  static telemetry::SpanContext Sampled() {
    return {
        .trace_high = 0x0123456789abcdef, .trace_low = 1, .span = 2, .parent = 0, .sampled = true};
  }

  std::array<int, 2> pipe_{};
  Tracer tracer_{{.ratio = 1.0}};
  World world_{kOne};
};

TEST_F(Observed, KeysAreWrittenWithoutApiKeys) {
  EXPECT_EQ(KeyText(Asked::Key("ada").check.request), "ada");
  EXPECT_EQ(KeyText(Asked::For({{"user", "42"}, {"api_key", "x"}, {"route", "/p"}}).check.request),
            "user:42|route:/p");
}

TEST_F(Observed, ARefusalIsLogged) {
  LogFrom(telemetry::Level::kInfo);
  world_.shared().observe.key_text = [](std::string_view key) {
    return "<" + std::string(key) + ">";
  };
  auto limiter = world_.NewLimiter();
  Asked asked = Asked::For({{"user", "42"}});
  asked.check.origin = {.door = "http", .request_id = "r-1", .trace = Sampled()};
  asked.On(*limiter);
  EXPECT_THAT(Logged(), Not(HasSubstr("limited")));
  asked.On(*limiter);
  const std::string text = Logged();
  EXPECT_THAT(
      text,
      HasSubstr(R"("message":"limited","request_id":"r-1","door":"http",)"
                R"("key":"<user:42>","domain":"default","policy":"one","retry_after_ms":10000,)"
                R"("suppressed":0,"trace_id":"0123456789abcdef0000000000000001",)"
                R"("span_id":"0000000000000002"})"));
}

TEST_F(Observed, ARefusalWithoutTheStoreSaysWhatDecidedIt) {
  LogFrom(telemetry::Level::kInfo);
  world_.Publish(R"(
domain: api
policies:
  - name: one
    match: {user: "*"}
    quota: {fixed_window: {limit: 1, window: 10s}}
    on_store_error: deny
)");
  PolicyLimiter cut_off(world_.shared(), std::make_unique<AbsentStore>());
  Asked asked = Asked::For({{"user", "42"}});
  asked.check.request.domain = "api";
  EXPECT_FALSE(asked.On(cut_off).decision.allowed());
  EXPECT_THAT(Logged(), HasSubstr(R"("domain":"api","policy":"one","degraded":"deny",)"));
}

TEST_F(Observed, WhatAShadowPolicyWouldRefuseIsLogged) {
  LogFrom(telemetry::Level::kInfo);
  world_.Publish(R"(
policies:
  - name: trial
    match: {user: "*"}
    quota: {fixed_window: {limit: 1, window: 10s}}
    shadow: true
)");
  world_.shared().observe.refusals_per_second = 1;
  auto limiter = world_.NewLimiter();
  Asked asked = Asked::For({{"user", "42"}});
  asked.check.origin = {.door = "proxy", .request_id = "r-1", .trace = {}};
  asked.On(*limiter);
  EXPECT_THAT(Logged(), Not(HasSubstr("limited")));
  EXPECT_TRUE(asked.On(*limiter).decision.allowed());
  EXPECT_THAT(Logged(), HasSubstr(R"("message":"limited in shadow","request_id":"r-1",)"
                                  R"("door":"proxy","key":"user:42","domain":"default",)"
                                  R"("policy":"trial","retry_after_ms":10000,"suppressed":0})"));
  asked.On(*limiter);
  asked.On(*limiter);
  EXPECT_THAT(Logged(), Not(HasSubstr("limited"))) << "one line a second";
}

TEST_F(Observed, ABucketThatSeveralDescriptorsShareIsLoggedOnceInShadow) {
  LogFrom(telemetry::Level::kInfo);
  world_.Publish(R"(
policies:
  - name: trial
    match: {user: "*"}
    quota: {fixed_window: {limit: 1, window: 10s}}
    shadow: true
)");
  auto limiter = world_.NewLimiter();
  Asked::For({{"user", "42"}}).On(*limiter);
  LogFrom(telemetry::Level::kInfo);
  const policy::Entry plain[] = {{"user", "42"}, {"route", "/pay"}};
  const policy::Entry slash[] = {{"user", "42"}, {"route", "/pay/"}};
  const policy::Descriptor both[] = {plain, slash};
  Asked asked = Asked::For({});
  asked.check.request.descriptors = both;
  asked.On(*limiter);
  const std::string text = Logged();
  const std::size_t first = text.find("limited in shadow");
  EXPECT_NE(first, text.npos);
  EXPECT_EQ(text.find("limited in shadow", first + 1), text.npos);
}

TEST_F(Observed, ARequestWithoutAnIdGetsOne) {
  LogFrom(telemetry::Level::kInfo);
  auto limiter = world_.NewLimiter();
  Asked asked = Asked::For({{"user", "42"}});
  asked.On(*limiter);
  asked.On(*limiter);
  asked.On(*limiter);
  const std::string text = Logged();
  const auto id = [&text](std::size_t from) {
    const std::size_t at = text.find(R"("request_id":")", from) + 14;
    return text.substr(at, text.find('"', at) - at);
  };
  const std::string first = id(0);
  EXPECT_THAT(first, SizeIs(16));
  EXPECT_NE(first, id(text.find(first) + 1));
  EXPECT_THAT(text, Not(HasSubstr("trace_id"))) << "it is not traced";
}

TEST_F(Observed, NothingIsLoggedWhereTheRateIsNought) {
  LogFrom(telemetry::Level::kInfo);
  world_.shared().observe.refusals_per_second = 0;
  auto none = world_.NewLimiter();
  Asked asked = Asked::For({{"user", "42"}});
  asked.On(*none);
  asked.On(*none);
  EXPECT_THAT(Logged(), Not(HasSubstr("limited")));
}

TEST_F(Observed, ACheckThatCannotBeDecidedIsLoggedWithItsError) {
  LogFrom(telemetry::Level::kInfo);
  auto limiter = world_.NewLimiter();
  Asked asked = Asked::For({});
  asked.check.op = store::Op::kSettle;
  asked.check.settles = "not a reservation";
  asked.On(*limiter);
  const std::string text = Logged();
  EXPECT_THAT(text, HasSubstr(R"("level":"warn","message":"check failed")"));
  EXPECT_THAT(text, HasSubstr("reservation: must be"));
}

TEST_F(Observed, NothingIsLoggedBelowTheLevel) {
  LogFrom(telemetry::Level::kWarn);
  auto limiter = world_.NewLimiter();
  Asked asked = Asked::For({{"user", "42"}});
  asked.On(*limiter);
  asked.On(*limiter);
  EXPECT_THAT(Logged(), Not(HasSubstr("limited")));
}

/// A charge made by an endpoint itself, to a bucket of one.
struct OwnCharge {
  Quota quota = *Quota::FixedWindow(1, 10s);
  store::Charge charge{"k", 1, &quota};
  Decision decision;
  store::Application application;

  OwnCharge() {
    application.charges = {&charge, 1};
    application.decisions = {&decision, 1};
  }
  void On(Limiter& limiter) {
    bool told = false;
    limiter.Apply({&application, 1}, [&told] { told = true; });
    EXPECT_TRUE(told);
  }
};

TEST_F(Observed, AChargeThatADoorMadeIsLoggedAndTraced) {
  LogFrom(telemetry::Level::kInfo);
  world_.shared().observe.tracer = &tracer_;
  auto limiter = world_.NewLimiter();
  EXPECT_EQ(limiter->tracer(), &tracer_);
  OwnCharge own;
  own.On(*limiter);
  std::vector<Span> spans = Spans();
  ASSERT_THAT(spans, SizeIs(3));
  EXPECT_EQ(spans[0].name, "CL.THROTTLE");
  EXPECT_EQ(spans[0].kind, Span::Kind::kServer);
  EXPECT_EQ(TextOf(spans[0], "weir.outcome"), "allowed");
  EXPECT_EQ(spans[1].name, "weir.decide");
  EXPECT_EQ(TextOf(spans[1], "weir.key"), "k");
  EXPECT_EQ(spans[1].context.parent, spans[0].context.span);
  EXPECT_EQ(spans[2].name, "weir.store");
  EXPECT_EQ(spans[2].context.parent, spans[1].context.span);
  EXPECT_EQ(TextOf(spans[2], "db.system"), "memory");
  own.On(*limiter);
  spans = Spans();
  ASSERT_THAT(spans, SizeIs(3));
  EXPECT_EQ(TextOf(spans[0], "weir.outcome"), "limited");
  EXPECT_THAT(Logged(), HasSubstr(R"("door":"resp","key":"k","retry_after_ms":)"));
}

TEST_F(Observed, AChargeThatADoorMadeIsNotLoggedWhereNothingIs) {
  LogFrom(telemetry::Level::kError);
  auto limiter = world_.NewLimiter();
  OwnCharge own;
  own.On(*limiter);
  own.On(*limiter);
  EXPECT_EQ(own.decision.verdict, Verdict::kLimited);
  EXPECT_THAT(Logged(), Not(HasSubstr("limited")));
}

TEST_F(Observed, AChargeThatTheStoreCouldNotDecideCountsAsFailed) {
  PolicyLimiter limiter(world_.shared(), std::make_unique<AbsentStore>());
  OwnCharge own;
  own.On(limiter);
  EXPECT_FALSE(own.application.status.ok());
  EXPECT_EQ(world_.shared().counters.Checks().errors, 1U);
  EXPECT_EQ(world_.shared().counters.Checks().allowed, 0U);
}

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
