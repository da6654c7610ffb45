// Rare but valid requests and answers of Envoy's rate limit service.

#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "envoy/service/ratelimit/v3/rls.pb.h"
#include "policy/policy_set.h"
#include "protocol/grpc/rls.h"
#include "unit/protocol/grpc/fake_limiter.h"
#include "unit/protocol/grpc/session_fixture.h"

namespace weir::grpc::testing {
namespace {

using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RlsEdges : public SessionTest {
 protected:
  void Serve(FakeLimiter::Script script, const RlsOptions& options = {}) {
    limiter_ = std::make_unique<FakeLimiter>(std::move(script));
    decider_ = std::make_unique<Decider>(*limiter_);
    services_.Add(std::string(kShouldRateLimitPath), MakeShouldRateLimit(*decider_, options));
    services_.OnBurstEnd([this] { decider_->Flush(); });
  }

  const Answer& Call(const RateLimitRequest& request) {
    return CallAndWait(std::string(kShouldRateLimitPath), Framed(request));
  }
  RateLimitResponse Ask(const RateLimitRequest& request) {
    const Answer& answer = Call(request);
    RateLimitResponse response;
    EXPECT_EQ(answer.status(), "0") << answer.message();
    EXPECT_TRUE(response.ParseFromString(answer.messages().at(0)));
    return response;
  }

  /// A request with this many descriptors {"a": "0"}, {"a": "1"}, …
  static RateLimitRequest Request(int descriptors) {
    RateLimitRequest request;
    request.set_domain("api");
    for (int i = 0; i < descriptors; ++i) {
      auto& entry = *request.add_descriptors()->add_entries();
      entry.set_key("a");
      entry.set_value(std::to_string(i));
    }
    return request;
  }

  static Decision Left(std::int64_t remaining) {
    Decision decision;
    decision.limit = 10;
    decision.remaining = remaining;
    return decision;
  }

  const Quota minute_ = *Quota::FixedWindow(10, seconds(60));
  const Quota bucket_ = *Quota::TokenBucket(10, 1, seconds(6));
  /// Envoy would admit on an error, so an unread request is denied; and it is not decided either.
  void ExpectRefusedUnread(const Answer& answer, const std::string& why) {
    RateLimitResponse response;
    ASSERT_EQ(answer.status(), "0") << answer.message();
    ASSERT_TRUE(response.ParseFromString(answer.messages().at(0)));
    EXPECT_EQ(response.overall_code(), RateLimitResponse::OVER_LIMIT);
    EXPECT_THAT(response.raw_body(), HasSubstr(why));
    EXPECT_THAT(limiter_->asked(), IsEmpty());
  }

  std::unique_ptr<FakeLimiter> limiter_;
  std::unique_ptr<Decider> decider_;
};

TEST_F(RlsEdges, UnderALimitOfZeroNoMoreComesBackThanIsSaid) {
  Serve([](limiter::Check&) {});
  RateLimitRequest request = Request(1);
  auto& descriptor = *request.mutable_descriptors(0);
  descriptor.mutable_limit()->set_unit(envoy::type::v3::HOUR);
  descriptor.mutable_hits_addend()->set_value(3);
  descriptor.set_is_negative_hits(true);
  Ask(request);
  EXPECT_EQ(limiter_->asked().at(0).op, store::Op::kRefund);
  EXPECT_EQ(limiter_->asked().at(0).costs.at(0), 3);
}

// Envoy forwards header fields unchanged, and admits requests that its service does not
// decide.
TEST_F(RlsEdges, AValueThatIsNotUtf8IsDecidedLikeAnyOther) {
  RlsOptions options;
  options.dynamic_metadata = true;
  Serve([](limiter::Check&) {}, options);
  RateLimitRequest request = Request(1);
  request.mutable_descriptors(0)->mutable_entries(0)->set_value("caf\xe9");
  const RateLimitResponse response = Ask(request);
  EXPECT_EQ(limiter_->asked().at(0).descriptors.at(0).at(0).second, "caf\xe9");
  const auto& told = response.dynamic_metadata().fields().at("descriptors").list_value().values(0);
  EXPECT_EQ(told.struct_value().fields().at("entries").list_value().values(0).string_value(),
            "a=caf\\xe9");
}

TEST_F(RlsEdges, AWindowOfNoUnitsOrOfOverACenturyIsInvalid) {
  Serve([](limiter::Check&) {});
  RateLimitRequest request = Request(1);
  auto& limit = *request.mutable_descriptors(0)->mutable_limit();
  limit.set_requests_per_unit(5);
  limit.set_unit(envoy::type::v3::YEAR);
  limit.mutable_unit_multiplier()->set_value(0);
  EXPECT_EQ(Call(request).message(), "limit.unit_multiplier must be at least 1");
  // 36,525 days are 100 years of 365 days and 25 days more.
  limit.mutable_unit_multiplier()->set_value(101);
  EXPECT_EQ(Call(request).message(), "limit.unit_multiplier makes a window of over 100 years");
  EXPECT_TRUE(limiter_->asked().empty());
  limit.mutable_unit_multiplier()->set_value(100);
  EXPECT_EQ(Call(request).status(), "0");
}

TEST_F(RlsEdges, ARequestThatOnlyGivesBackChargesNothing) {
  Serve([this](limiter::Check& check) { AddVerdict(check, 0, "p", &minute_, Left(8)); });
  RateLimitRequest request = Request(1);
  request.mutable_descriptors(0)->set_is_negative_hits(true);
  EXPECT_EQ(Ask(request).statuses(0).limit_remaining(), 8U);
  ASSERT_EQ(limiter_->asked().size(), 1U);
  EXPECT_EQ(limiter_->asked()[0].op, store::Op::kRefund);
}

TEST_F(RlsEdges, ARequestWithoutAPolicyIsOverLimitWhereThoseAreDenied) {
  Serve([](limiter::Check& check) {
    check.matched = false;
    if (check.request.cost > 1) check.decision.verdict = Verdict::kNever;
  });
  RateLimitRequest request = Request(1);
  EXPECT_EQ(Ask(request).overall_code(), RateLimitResponse::OK);
  EXPECT_EQ(Ask(request).raw_body(), "");
  request.set_hits_addend(2);
  const RateLimitResponse refused = Ask(request);
  EXPECT_EQ(refused.overall_code(), RateLimitResponse::OVER_LIMIT);
  EXPECT_EQ(refused.raw_body(), "No policy applies to this request, and such requests are refused");
  EXPECT_EQ(refused.statuses(0).code(), RateLimitResponse::OK);  // it exceeds no limit
}

TEST_F(RlsEdges, AnUntouchedBucketIsFullAtOnceButAWindowEnds) {
  clock_.Advance(seconds(41) - std::chrono::nanoseconds(clock_.Now()));
  RlsOptions options;
  options.clock = &clock_;
  Serve(
      [this](limiter::Check& check) {
        AddVerdict(check, 0, "p", &bucket_, Left(10));
        AddVerdict(check, 1, "w", &minute_, Left(10));
      },
      options);
  const RateLimitResponse response = Ask(Request(2));
  EXPECT_EQ(response.statuses(0).duration_until_reset().seconds(), 0);
  EXPECT_EQ(response.statuses(1).duration_until_reset().seconds(), 19);  // 60 - 41
}

// A policy in quota mode counts as a quota only while it does not deny by itself.
TEST_F(RlsEdges, AQuotaThatIsEnforcedIsALimit) {
  policy::Policy rule;
  rule.definition.quota_mode = true;
  RlsOptions options;
  options.dynamic_metadata = true;
  Serve(
      [&](limiter::Check& check) {
        AddVerdict(check, 0, "p", &minute_, Left(3), /*shadow=*/false);
        check.verdicts.back().rule = &rule;
      },
      options);
  const RateLimitResponse response = Ask(Request(1));
  EXPECT_FALSE(response.dynamic_metadata().fields().at("quotaModeEnabled").bool_value());
}

TEST_F(RlsEdges, OfAFieldThatIsAStructHereAndATextThereTheFirstHasTheSay) {
  policy::Policy nested;
  nested.definition.metadata = R"({"x":{"a":1},"y":"text"})";
  policy::Policy flat;
  flat.definition.metadata = R"({"x":"text","y":{"a":1}})";
  RlsOptions options;
  options.dynamic_metadata = true;
  Serve(
      [&](limiter::Check& check) {
        AddVerdict(check, 0, "n", &minute_, Left(3));
        check.verdicts.back().rule = &nested;
        AddVerdict(check, 1, "f", &minute_, Left(3));
        check.verdicts.back().rule = &flat;
      },
      options);
  const RateLimitResponse response = Ask(Request(2));
  const auto& own = response.dynamic_metadata().fields().at("metadata").struct_value().fields();
  EXPECT_EQ(own.at("x").struct_value().fields().at("a").number_value(), 1);
  EXPECT_EQ(own.at("y").string_value(), "text");
}

TEST_F(RlsEdges, AWindowIsTheLargestUnitThatDividesItTimesAMultiplier) {
  using Limit = RateLimitResponse::RateLimit;
  using std::chrono::hours;
  struct Case {
    std::chrono::nanoseconds window;
    Limit::Unit unit;
    std::uint32_t times;  // 0: absent, which means 1
  };
  const Case cases[] = {
      {seconds(1), Limit::SECOND, 0},    {seconds(10), Limit::SECOND, 10},
      {seconds(60), Limit::MINUTE, 0},   {seconds(90), Limit::SECOND, 90},
      {seconds(300), Limit::MINUTE, 5},  {hours(1), Limit::HOUR, 0},
      {hours(36), Limit::HOUR, 36},      {hours(24) * 6, Limit::DAY, 6},
      {hours(24) * 7, Limit::WEEK, 0},   {hours(24) * 14, Limit::WEEK, 2},
      {hours(24) * 90, Limit::MONTH, 3}, {hours(24) * 365, Limit::YEAR, 0},
      {kMaxWindow, Limit::DAY, 36525},   {std::chrono::milliseconds(1500), Limit::UNKNOWN, 0}};
  std::optional<Quota> quota;
  Serve([&](limiter::Check& check) { AddVerdict(check, 0, "p", &*quota, Left(3)); });
  for (const auto& [window, unit, times] : cases) {
    quota = *Quota::FixedWindow(10, window);
    const Limit limit = Ask(Request(1)).statuses(0).current_limit();
    EXPECT_EQ(limit.unit(), unit) << quota->ToString();
    EXPECT_EQ(limit.has_unit_multiplier(), times != 0) << quota->ToString();
    EXPECT_EQ(limit.unit_multiplier().value(), times) << quota->ToString();
  }
  // 10 permits, one in 6 s: 10 a minute.
  quota = bucket_;
  EXPECT_EQ(Ask(Request(1)).statuses(0).current_limit().unit(), Limit::MINUTE);
  // Its lease is not a window.
  quota = *Quota::Concurrency(10, seconds(60));
  EXPECT_EQ(Ask(Request(1)).statuses(0).current_limit().unit(), Limit::UNKNOWN);
}

// Clients behind Envoy see such headers, so none is sent unless configured.
TEST_F(RlsEdges, WithoutHeadersThatTheStoreDidNotDecideIsNotToldEither) {
  Serve([](limiter::Check& check) { check.degraded_by = "local"; });
  EXPECT_EQ(Ask(Request(1)).response_headers_to_add_size(), 0);
}

TEST_F(RlsEdges, WhatIsDecidedWithoutTheStoreSaysSo) {
  std::string how;
  RlsOptions options;
  options.headers = true;
  Serve([&](limiter::Check& check) { check.degraded_by = how; }, options);
  EXPECT_EQ(Ask(Request(1)).response_headers_to_add_size(), 0);
  how = "local";
  const RateLimitResponse response = Ask(Request(1));
  ASSERT_EQ(response.response_headers_to_add_size(), 1);
  EXPECT_EQ(response.response_headers_to_add(0).key(), "x-ratelimit-degraded");
  EXPECT_EQ(response.response_headers_to_add(0).value(), "local");
}

// Up to 60 KiB of headers reach Envoy by default, and a descriptor may contain each of them.
TEST_F(RlsEdges, AMessageThatIsTooLargeIsOverTheLimit) {
  Serve([](limiter::Check&) {});
  Restart({.max_message_bytes = 1000});
  RateLimitRequest request = Request(1);
  request.mutable_descriptors(0)->mutable_entries(0)->set_value(std::string(2000, 'v'));
  ExpectRefusedUnread(Call(request), "at most 1000 bytes");
}

TEST_F(RlsEdges, AMessageOfTooManyPartsIsOverTheLimit) {
  Serve([](limiter::Check&) {});
  RateLimitRequest request = Request(1);
  for (int i = 0; i < 60'000; ++i) request.add_descriptors();
  ExpectRefusedUnread(Call(request), "at most 50000");
}

// Tracing forwards `tracestate` as the client sent it.
TEST_F(RlsEdges, TooManyHeaderFieldsAreOverTheLimit) {
  Serve([](limiter::Check&) {});
  const std::string path(kShouldRateLimitPath);
  const std::string state(20'000, 's');
  ExpectRefusedUnread(CallAndWait(path, Framed(Request(1)), {{"tracestate", state}}),
                      "header fields exceed");
}

TEST_F(RlsEdges, MoreMemoryThanAConnectionMayHoldIsOverTheLimit) {
  Serve([](limiter::Check&) {});
  Restart({.max_buffered_bytes = 1000});
  RateLimitRequest request = Request(1);
  request.mutable_descriptors(0)->mutable_entries(0)->set_value(std::string(2000, 'v'));
  ExpectRefusedUnread(Call(request), "on this connection use too much memory");
}

TEST_F(RlsEdges, DescriptorsThatTakeMoreMemoryThanTheirMessageAreOverTheLimit) {
  Serve([](limiter::Check&) {});
  Restart({.max_buffered_bytes = 10'000});
  ExpectRefusedUnread(Call(Request(100)), "on this connection use too much memory");
}

TEST_F(RlsEdges, MoreMemoryThanAllConnectionsMayHoldIsOverTheLimit) {
  Serve([](limiter::Check&) {});
  services_.SetMemory(1);
  Restart({.fair_bytes = 500});  // less than an open call needs
  ExpectRefusedUnread(Call(Request(1)), "of all connections use too much memory");
  server_.reset();
}

TEST_F(RlsEdges, ARequestThatNoStoreCanDecideIsOverTheLimit) {
  Serve([](limiter::Check& check) {
    check.status = Error{Code::kInvalidArgument, "more than 256 policies apply to one check"};
  });
  const RateLimitResponse response = Ask(Request(1));
  EXPECT_EQ(response.overall_code(), RateLimitResponse::OVER_LIMIT);
  EXPECT_EQ(response.raw_body(), "more than 256 policies apply to one check");
}

TEST_F(RlsEdges, ARefundThatFailsHidesNoLimitThatIsOver) {
  bool over = true;
  Serve([&](limiter::Check& check) {
    if (check.op == store::Op::kRefund) {
      check.status = Error{Code::kUnavailable, "the store is down"};
      return;
    }
    Decision decision = Left(0);
    if (over) decision.verdict = Verdict::kLimited;
    AddVerdict(check, 0, "p", &minute_, decision);
  });
  RateLimitRequest request = Request(2);
  request.mutable_descriptors(1)->set_is_negative_hits(true);
  EXPECT_EQ(Ask(request).overall_code(), RateLimitResponse::OVER_LIMIT);
  over = false;
  EXPECT_EQ(Call(request).status(), "14") << "nobody believes that it was made";
}

}  // namespace
}  // namespace weir::grpc::testing
