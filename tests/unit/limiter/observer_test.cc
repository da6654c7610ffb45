// The log lines of decisions, and charges that protocols make themselves.

#include "limiter/observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unit/limiter/observed.h"

namespace weir::limiter {
namespace {

using namespace std::chrono_literals;
using store::Op;
using telemetry::Span;
using test::AbsentStore;
using test::Asked;
using test::Observed;
using test::OwnCharge;
using test::TextOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(Observed, ApiKeysAreLeftOutOrUnreadable) {
  ObserverOptions options;
  EXPECT_EQ(KeyText(Asked::Key("ada").check.request, options), "ada");
  const Asked asked = Asked::For({{"user", "42"}, {"api_key", "x"}, {"route", "/p"}});
  EXPECT_EQ(KeyText(asked.check.request, options), "user:42|route:/p");
  options.secret_text = [](std::string_view key) { return "#" + std::to_string(key.size()); };
  EXPECT_EQ(KeyText(asked.check.request, options), "user:42|api_key:#1|route:/p");
}

TEST_F(Observed, RequestsRefusedWithoutACheckAreLoggedWithinTheRate) {
  LogFrom(telemetry::Level::kInfo);
  world_.shared().observe.refusals_per_second = 1;
  world_.shared().observe.key_text = [](std::string_view key) {
    return "<" + std::string(key) + ">";
  };
  auto limiter = world_.NewLimiter();
  for (int i = 0; i < 50; ++i) {
    limiter->NoteRejection(
        {.door = "http", .reason = "why", .address = "192.0.2.1", .request_id = "r-1"});
  }
  const std::string text = Logged();
  const std::string line = R"("message":"refused","request_id":"r-1","door":"http","reason":"why",)"
                           R"("address":"<192.0.2.1>","suppressed":)";
  EXPECT_THAT(text, HasSubstr(line + "0}"));
  // The second may end in between.
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = text.find(line, at)) != text.npos; ++at) ++lines;
  EXPECT_LE(lines, 2U);
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

}  // namespace
}  // namespace weir::limiter
