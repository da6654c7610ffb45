#include "protocol/grpc/rls.h"

#include <gmock/gmock.h>

#include <limits>
#include <map>

#include "envoy/service/ratelimit/v3/rls.pb.h"
#include "policy/policy_set.h"
#include "unit/protocol/grpc/fake_limiter.h"
#include "unit/protocol/grpc/session_fixture.h"

namespace weir::grpc::testing {
namespace {

using envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Decision Allowed(std::int64_t limit, std::int64_t remaining, seconds reset) {
  Decision decision;
  decision.limit = limit;
  decision.remaining = remaining;
  decision.reset_after = reset;
  return decision;
}

Decision Limited(std::int64_t limit, std::chrono::nanoseconds wait) {
  Decision decision = Allowed(limit, 0, seconds(0));
  decision.verdict = Verdict::kLimited;
  decision.retry_after = wait;
  decision.reset_after = wait;
  return decision;
}

RateLimitDescriptor& AddDescriptor(RateLimitRequest& request, const std::string& key,
                                   const std::string& value) {
  RateLimitDescriptor& descriptor = *request.add_descriptors();
  auto& entry = *descriptor.add_entries();
  entry.set_key(key);
  entry.set_value(value);
  return descriptor;
}

class RlsTest : public SessionTest {
 protected:
  void Serve(FakeLimiter::Script script, const RlsOptions& options = {}) {
    limiter_ = std::make_unique<FakeLimiter>(std::move(script));
    decider_ = std::make_unique<Decider>(*limiter_);
    services_.Add(std::string(kShouldRateLimitPath), MakeShouldRateLimit(*decider_, options));
    services_.OnBurstEnd([this] { decider_->Flush(); });
  }

  static RateLimitResponse Parsed(const Answer& answer) {
    RateLimitResponse response;
    EXPECT_EQ(answer.status(), "0") << answer.message();
    EXPECT_TRUE(response.ParseFromString(answer.messages().at(0)));
    return response;
  }

  RateLimitResponse Ask(const RateLimitRequest& request) {
    return Parsed(CallAndWait(std::string(kShouldRateLimitPath), Framed(request)));
  }

  std::string StatusOf(const RateLimitRequest& request) {
    return CallAndWait(std::string(kShouldRateLimitPath), Framed(request)).status();
  }

  static std::map<std::string, std::string> Headers(const RateLimitResponse& response) {
    std::map<std::string, std::string> headers;
    for (const auto& header : response.response_headers_to_add()) {
      headers[header.key()] = header.value();
    }
    return headers;
  }

  const Quota minute_ = *Quota::FixedWindow(10, seconds(60));
  const Quota odd_ = *Quota::FixedWindow(10, seconds(7));
  std::unique_ptr<FakeLimiter> limiter_;
  std::unique_ptr<Decider> decider_;
};

TEST_F(RlsTest, AnswersOneStatusPerDescriptorInTheirOrder) {
  Serve([this](limiter::Check& check) {
    AddVerdict(check, 0, "first", &minute_, Allowed(10, 9, seconds(30)));
    AddVerdict(check, 2, "third", &minute_, Limited(10, milliseconds(1500)));
  });
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "user", "42");
  AddDescriptor(request, "plan", "free");
  AddDescriptor(request, "route", "/pay");
  const RateLimitResponse response = Ask(request);
  EXPECT_EQ(response.overall_code(), RateLimitResponse::OVER_LIMIT);
  ASSERT_EQ(response.statuses_size(), 3);

  EXPECT_EQ(response.statuses(0).code(), RateLimitResponse::OK);
  // The names of Weir's policies are not revealed.
  EXPECT_EQ(response.statuses(0).current_limit().name(), "");
  EXPECT_EQ(response.statuses(0).current_limit().requests_per_unit(), 10U);
  EXPECT_EQ(response.statuses(0).current_limit().unit(), RateLimitResponse::RateLimit::MINUTE);
  EXPECT_EQ(response.statuses(0).limit_remaining(), 9U);
  EXPECT_EQ(response.statuses(0).duration_until_reset().seconds(), 30);

  // The second matched nothing: OK, without a limit.
  EXPECT_EQ(response.statuses(1).code(), RateLimitResponse::OK);
  EXPECT_FALSE(response.statuses(1).has_current_limit());
  EXPECT_EQ(response.statuses(1).limit_remaining(), 0U);

  EXPECT_EQ(response.statuses(2).code(), RateLimitResponse::OVER_LIMIT);
  EXPECT_EQ(response.statuses(2).duration_until_reset().seconds(), 2);  // 1.5 s, rounded up
}

TEST_F(RlsTest, PassesDomainAndEntriesOn) {
  Serve([](limiter::Check&) {});
  RateLimitRequest request;
  request.set_domain("mongo");
  auto& descriptor = AddDescriptor(request, "database", "users");
  descriptor.add_entries()->set_key("role");
  Ask(request);
  ASSERT_EQ(limiter_->asked().size(), 1U);
  const Asked& asked = limiter_->asked()[0];
  EXPECT_EQ(asked.domain, "mongo");
  EXPECT_THAT(asked.descriptors,
              ElementsAre(ElementsAre(Pair("database", "users"), Pair("role", ""))));
  EXPECT_EQ(asked.cost, 1);
  EXPECT_THAT(asked.costs, IsEmpty());
}

TEST_F(RlsTest, HitsOfTheRequestAndOfADescriptor) {
  Serve([](limiter::Check&) {});
  RateLimitRequest request;
  request.set_domain("api");
  request.set_hits_addend(5);
  AddDescriptor(request, "a", "1");
  AddDescriptor(request, "b", "1").mutable_hits_addend()->set_value(7);
  AddDescriptor(request, "c", "1").mutable_hits_addend()->set_value(0);  // only peeks
  Ask(request);
  EXPECT_EQ(limiter_->asked().at(0).cost, 5);
  EXPECT_THAT(limiter_->asked().at(0).costs, ElementsAre(5, 7, 0));
  EXPECT_THAT(limiter_->asked().at(0).reported, ElementsAre(0, 1, 1));
}

TEST_F(RlsTest, HitsOfADescriptorAreItsOwnAlsoWhenTheyAreWhatTheRequestSays) {
  Serve([](limiter::Check&) {});
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1").mutable_hits_addend()->set_value(1);
  Ask(request);
  EXPECT_THAT(limiter_->asked().at(0).costs, ElementsAre(1));
  EXPECT_THAT(limiter_->asked().at(0).reported, ElementsAre(1));
}

TEST_F(RlsTest, AHitsAddendOfZeroInTheRequestMeansOne) {
  Serve([](limiter::Check&) {});
  RateLimitRequest request;
  request.set_domain("api");
  request.set_hits_addend(0);
  AddDescriptor(request, "a", "1");
  Ask(request);
  EXPECT_EQ(limiter_->asked().at(0).cost, 1);
}

TEST_F(RlsTest, ALimitInTheDescriptorStandsInForThePolicies) {
  Serve([](limiter::Check&) {});
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  auto& limit = *AddDescriptor(request, "b", "1").mutable_limit();
  limit.set_requests_per_unit(42);
  limit.set_unit(envoy::type::v3::HOUR);
  Ask(request);
  EXPECT_THAT(limiter_->asked().at(0).override_texts,
              ElementsAre("", Quota::FixedWindow(42, std::chrono::hours(1))->ToString()));
}

TEST_F(RlsTest, ALimitOfSeveralUnits) {
  Serve([](limiter::Check&) {});
  RateLimitRequest request;
  request.set_domain("api");
  auto& limit = *AddDescriptor(request, "b", "1").mutable_limit();
  limit.set_requests_per_unit(42);
  limit.set_unit(envoy::type::v3::MINUTE);
  limit.mutable_unit_multiplier()->set_value(5);
  Ask(request);
  EXPECT_THAT(limiter_->asked().at(0).override_texts,
              ElementsAre(Quota::FixedWindow(42, seconds(300))->ToString()));
}

TEST_F(RlsTest, ALimitOfZeroAdmitsNothing) {
  Serve([](limiter::Check&) {});
  RateLimitRequest request;
  request.set_domain("api");
  auto& limit = *AddDescriptor(request, "b", "1").mutable_limit();
  limit.set_unit(envoy::type::v3::SECOND);
  Ask(request);
  // The smallest quota, with a request for more than it can ever grant.
  EXPECT_THAT(limiter_->asked().at(0).override_texts,
              ElementsAre(Quota::FixedWindow(1, seconds(1))->ToString()));
  EXPECT_THAT(limiter_->asked().at(0).costs, ElementsAre(2));
}

TEST_F(RlsTest, NegativeHitsAreGivenBack) {
  Serve([this](limiter::Check& check) {
    const bool refund = check.op == store::Op::kRefund;
    AddVerdict(check, 0, "p", &minute_, Allowed(10, refund ? 8 : 5, seconds(30)));
  });
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1").set_is_negative_hits(true);
  request.mutable_descriptors(0)->mutable_hits_addend()->set_value(3);
  AddDescriptor(request, "b", "1");
  const RateLimitResponse response = Ask(request);
  ASSERT_EQ(limiter_->asked().size(), 2U);
  EXPECT_THAT(limiter_->asked()[0].descriptors, ElementsAre(ElementsAre(Pair("b", "1"))));
  EXPECT_EQ(limiter_->asked()[1].op, store::Op::kRefund);
  EXPECT_THAT(limiter_->asked()[1].costs, ElementsAre(3));
  // Still in the order of the request.
  EXPECT_EQ(response.statuses(0).limit_remaining(), 8U);
  EXPECT_EQ(response.statuses(1).limit_remaining(), 5U);
}

TEST_F(RlsTest, NegativeHitsAreForThoseWhoMayGiveBack) {
  Serve([](limiter::Check&) {});
  std::vector<std::string> keys;
  services_.SetGuard([&keys](const Method&, const Caller& caller) -> Status {
    if (!caller.gives_back) return {};
    keys.emplace_back(caller.key);
    if (caller.key == "mine") return {};
    return Error{Code::kPermissionDenied, "not you"};
  });
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  EXPECT_EQ(StatusOf(request), "0");
  EXPECT_THAT(keys, IsEmpty());
  AddDescriptor(request, "b", "1").set_is_negative_hits(true);
  EXPECT_EQ(StatusOf(request), "7");
  EXPECT_EQ(limiter_->asked().size(), 1U) << "nothing is charged either";
  const std::string path(kShouldRateLimitPath);
  EXPECT_EQ(CallAndWait(path, Framed(request), {{"x-weir-key", "mine"}}).status(), "0");
  EXPECT_THAT(keys, ElementsAre("", "mine"));
  EXPECT_EQ(limiter_->asked().size(), 3U);
}

TEST_F(RlsTest, UnlimitedHasTheLargestRemainder) {
  Serve([](limiter::Check& check) { AddVerdict(check, 0, "free", nullptr, Decision()); });
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  const RateLimitResponse response = Ask(request);
  EXPECT_EQ(response.overall_code(), RateLimitResponse::OK);
  EXPECT_EQ(response.statuses(0).limit_remaining(), 4294967295U);  // 2^32 - 1
  EXPECT_FALSE(response.statuses(0).has_current_limit());
  EXPECT_THAT(Headers(response), IsEmpty());
}

TEST_F(RlsTest, ShadowIsShownButNeverBlocks) {
  Serve([this](limiter::Check& check) {
    AddVerdict(check, 0, "watching", &minute_, Limited(10, seconds(3)), true);
  });
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  const RateLimitResponse response = Ask(request);
  EXPECT_EQ(response.overall_code(), RateLimitResponse::OK);
  EXPECT_EQ(response.statuses(0).code(), RateLimitResponse::OK);
  EXPECT_TRUE(response.statuses(0).has_current_limit());
  EXPECT_EQ(response.statuses(0).limit_remaining(), 0U);
  EXPECT_THAT(Headers(response), IsEmpty());
}

TEST_F(RlsTest, OfSeveralPoliciesTheStrictestIsTold) {
  Serve([this](limiter::Check& check) {
    AddVerdict(check, 0, "shadow", &minute_, Limited(10, seconds(9)), true);
    AddVerdict(check, 0, "wide", &minute_, Allowed(10, 9, seconds(1)));
    AddVerdict(check, 0, "narrow", &odd_, Allowed(10, 2, seconds(1)));
    AddVerdict(check, 0, "free", nullptr, Decision());
  });
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  const RateLimitResponse response = Ask(request);
  EXPECT_EQ(response.statuses(0).limit_remaining(), 2U);
  EXPECT_EQ(response.statuses(0).current_limit().unit_multiplier().value(), 7U);
}

RlsOptions WithHeaders() {
  RlsOptions options;
  options.headers = true;
  options.reset_header = "x-reset";
  return options;
}

TEST_F(RlsTest, HeadersTellOfTheStrictestLimit) {
  Serve(
      [this](limiter::Check& check) {
        AddVerdict(check, 0, "a", &minute_, Allowed(10, 4, seconds(30)));
        AddVerdict(check, 1, "b", &minute_, Limited(20, milliseconds(2100)));
      },
      WithHeaders());
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  AddDescriptor(request, "b", "1");
  EXPECT_THAT(Headers(Ask(request)),
              UnorderedElementsAre(Pair("RateLimit-Limit", "20"), Pair("RateLimit-Remaining", "0"),
                                   Pair("x-reset", "3"), Pair("retry-after", "3")));
}

TEST_F(RlsTest, ThereAreNoHeadersUnlessConfigured) {
  Serve([this](limiter::Check& check) {
    AddVerdict(check, 0, "a", &minute_, Limited(10, seconds(1)));
  });
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  EXPECT_THAT(Headers(Ask(request)), IsEmpty());
}

TEST_F(RlsTest, ACostThatCanNeverFitIsOverLimitWithoutRetryAfter) {
  Serve(
      [this](limiter::Check& check) {
        Decision never = Allowed(10, 7, seconds(0));
        never.verdict = Verdict::kNever;
        AddVerdict(check, 0, "a", &minute_, never);
      },
      WithHeaders());
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  const RateLimitResponse response = Ask(request);
  EXPECT_EQ(response.overall_code(), RateLimitResponse::OVER_LIMIT);
  EXPECT_EQ(response.statuses(0).limit_remaining(), 0U);
  EXPECT_EQ(Headers(response).count("retry-after"), 0U);
}

TEST_F(RlsTest, TheWindowOfAnUntouchedKeyEndsToo) {
  const ManualClock clock{Nanos{100} * 1'000'000'000};
  RlsOptions options;
  options.clock = &clock;
  Serve(
      [this](limiter::Check& check) {
        AddVerdict(check, 0, "a", &minute_, Allowed(10, 10, seconds(0)));
      },
      options);
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1").mutable_hits_addend()->set_value(0);
  EXPECT_EQ(Ask(request).statuses(0).duration_until_reset().seconds(), 20);
}

TEST_F(RlsTest, ALimitThatIsInQuotaModeIsNamedInTheMetadata) {
  policy::Policy rule;
  rule.definition.quota_mode = true;
  rule.definition.limit_name = "budget";
  rule.definition.metadata = R"({"name":"not told"})";
  policy::Policy other;
  other.definition.quota_mode = true;
  other.definition.metadata = R"({"name":"second","more":{"a":1}})";
  policy::Policy plain;
  plain.definition.metadata = R"({"name":"third","more":{"a":2,"b":true}})";
  RlsOptions options;
  options.dynamic_metadata = true;
  Serve(
      [&](limiter::Check& check) {
        AddVerdict(check, 0, "a", &minute_, Allowed(10, 3, seconds(1)));
        AddVerdict(check, 1, "b", &minute_, Limited(10, seconds(1)), true);
        check.verdicts.back().rule = &rule;
        AddVerdict(check, 2, "c", &minute_, Allowed(10, 3, seconds(1)), true);
        check.verdicts.back().rule = &other;
        AddVerdict(check, 3, "d", &minute_, Allowed(10, 3, seconds(1)));
        check.verdicts.back().rule = &plain;
      },
      options);
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  AddDescriptor(request, "b", "1").mutable_hits_addend()->set_value(5);
  AddDescriptor(request, "c", "1");
  AddDescriptor(request, "d", "1");
  const RateLimitResponse response = Ask(request);
  EXPECT_EQ(response.overall_code(), RateLimitResponse::OK);
  EXPECT_EQ(response.statuses(1).code(), RateLimitResponse::OVER_LIMIT);
  EXPECT_EQ(response.statuses(1).current_limit().name(), "budget");
  const auto& fields = response.dynamic_metadata().fields();
  EXPECT_EQ(fields.at("domain").string_value(), "api");
  EXPECT_TRUE(fields.at("quotaModeEnabled").bool_value());
  EXPECT_EQ(fields.at("quotaModeViolations").list_value().values(0).number_value(), 1);
  const auto& second = fields.at("descriptors").list_value().values(1).struct_value().fields();
  EXPECT_EQ(second.at("entries").list_value().values(0).string_value(), "b=1");
  EXPECT_EQ(second.at("hitsAddend").number_value(), 5);
  // Of the limits that are not over; the first one determines it.
  const auto& own = fields.at("metadata").struct_value().fields();
  EXPECT_EQ(own.at("name").string_value(), "second");
  const auto& more = own.at("more").struct_value().fields();
  EXPECT_EQ(more.at("a").number_value(), 1);
  EXPECT_TRUE(more.at("b").bool_value());
}

TEST_F(RlsTest, OneOfSeveralQuotasSuffices) {
  policy::Policy rule;
  rule.definition.quota_mode = true;
  int over = 0;
  Serve([&](limiter::Check& check) {
    for (int i = 0; i < 3; ++i) {
      const Decision decision = i < over ? Limited(10, seconds(1)) : Allowed(10, 3, seconds(1));
      AddVerdict(check, static_cast<std::size_t>(i), "a", &minute_, decision, true);
      check.verdicts.back().rule = &rule;
    }
  });
  RateLimitRequest request;
  request.set_domain("api");
  for (int i = 0; i < 3; ++i) AddDescriptor(request, "a", std::to_string(i));
  EXPECT_EQ(Ask(request).overall_code(), RateLimitResponse::OK);
  over = 2;
  EXPECT_EQ(Ask(request).overall_code(), RateLimitResponse::OK);
  over = 3;
  EXPECT_EQ(Ask(request).overall_code(), RateLimitResponse::OVER_LIMIT);
}

// A shadow policy alone is not a quota: it never denies.
TEST_F(RlsTest, AShadowPolicyThatIsOverIsShownAsOk) {
  policy::Policy rule;
  Serve([&](limiter::Check& check) {
    AddVerdict(check, 0, "a", &minute_, Limited(10, seconds(1)), true);
    check.verdicts.back().rule = &rule;
  });
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  const RateLimitResponse response = Ask(request);
  EXPECT_EQ(response.overall_code(), RateLimitResponse::OK);
  EXPECT_EQ(response.statuses(0).code(), RateLimitResponse::OK);
}

TEST_F(RlsTest, AWeekIsAUnit) {
  const Quota week = *Quota::FixedWindow(10, std::chrono::hours(24 * 7));
  Serve(
      [&](limiter::Check& check) { AddVerdict(check, 0, "a", &week, Allowed(10, 3, seconds(1))); });
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  EXPECT_EQ(Ask(request).statuses(0).current_limit().unit(), RateLimitResponse::RateLimit::WEEK);
}

TEST_F(RlsTest, ADescriptorWithoutEntriesIsOkAndRepeatedOnesCountEachTime) {
  Serve([](limiter::Check& check) { EXPECT_TRUE(check.request.each_time); });
  RateLimitRequest request;
  request.set_domain("api");
  request.add_descriptors();
  const RateLimitResponse response = Ask(request);
  EXPECT_EQ(response.overall_code(), RateLimitResponse::OK);
  EXPECT_FALSE(response.statuses(0).has_current_limit());
}

TEST_F(RlsTest, ALimitBeyond32BitsIsShownAsTheLargest) {
  Serve([this](limiter::Check& check) {
    AddVerdict(check, 0, "a", &minute_, Allowed(std::int64_t{1} << 40, 1LL << 39, seconds(1)));
  });
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  const RateLimitResponse response = Ask(request);
  EXPECT_EQ(response.statuses(0).current_limit().requests_per_unit(), 4294967295U);
  EXPECT_EQ(response.statuses(0).limit_remaining(), 4294967295U);
}

TEST_F(RlsTest, RequestsThatMakeNoSenseAreInvalidAndDecideNothing) {
  Serve([](limiter::Check&) {});
  RateLimitRequest no_domain;
  AddDescriptor(no_domain, "a", "1");
  EXPECT_EQ(StatusOf(no_domain), "3");
  RateLimitRequest no_descriptors;
  no_descriptors.set_domain("api");
  EXPECT_EQ(StatusOf(no_descriptors), "3");
  RateLimitRequest no_unit = no_descriptors;
  AddDescriptor(no_unit, "a", "1").mutable_limit()->set_requests_per_unit(1);
  EXPECT_EQ(StatusOf(no_unit), "3");
  RateLimitRequest too_many = no_descriptors;
  for (int i = 0; i < 257; ++i) AddDescriptor(too_many, "a", "1");
  EXPECT_EQ(StatusOf(too_many), "3");
  RateLimitRequest huge = no_descriptors;
  AddDescriptor(huge, "a", "1").mutable_hits_addend()->set_value(1ULL << 63U);
  EXPECT_EQ(StatusOf(huge), "3");
  EXPECT_EQ(CallAndWait(std::string(kShouldRateLimitPath), Framed("\xFF\xFF")).status(), "3");
  EXPECT_THAT(limiter_->asked(), IsEmpty());
}

TEST_F(RlsTest, AnInvalidRequestDoesNotDisturbThoseThatCameWithIt) {
  Serve([this](limiter::Check& check) {
    // The remaining count identifies the answer.
    const std::string_view user = check.request.descriptors[0][0].value;
    AddVerdict(check, 0, "p", &minute_, Allowed(10, user == "two" ? 2 : 1, seconds(1)));
  });
  client_->Exchange(*server_);
  RateLimitRequest good;
  good.set_domain("api");
  AddDescriptor(good, "user", "one");
  RateLimitRequest bad = good;
  for (int i = 0; i < 65; ++i) bad.mutable_descriptors(0)->add_entries();  // one too many
  RateLimitRequest other;
  other.set_domain("api");
  AddDescriptor(other, "user", "two");
  const std::string path(kShouldRateLimitPath);
  const std::int32_t a = client_->Call(path, Framed(good));
  const std::int32_t b = client_->Call(path, Framed(bad));
  const std::int32_t c = client_->Call(path, Framed(other));
  client_->Exchange(*server_);
  EXPECT_THAT(limiter_->calls(), ElementsAre(2));
  EXPECT_EQ(Parsed(client_->answer(a)).statuses(0).limit_remaining(), 1U);
  EXPECT_EQ(client_->answer(b).status(), "3");
  EXPECT_EQ(Parsed(client_->answer(c)).statuses(0).limit_remaining(), 2U);
}

TEST_F(RlsTest, AStoreThatCannotDecideIsTheCallsStatus) {
  Serve([](limiter::Check& check) {
    check.status = Error{Code::kUnavailable, "the store is down"};
  });
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  const Answer& answer = CallAndWait(std::string(kShouldRateLimitPath), Framed(request));
  EXPECT_EQ(answer.status(), "14");
  EXPECT_THAT(answer.message(), HasSubstr("the store is down"));
}

TEST_F(RlsTest, AHundredCallsOfOneReadAreOneDecision) {
  Serve([](limiter::Check&) {});
  client_->Exchange(*server_);
  RateLimitRequest request;
  request.set_domain("api");
  AddDescriptor(request, "a", "1");
  for (int i = 0; i < 100; ++i) client_->Call(std::string(kShouldRateLimitPath), Framed(request));
  client_->Exchange(*server_);
  EXPECT_THAT(limiter_->calls(), ElementsAre(100));
}

TEST_F(RlsTest, AnswersThatComeLaterReachTheirCalls) {
  Serve([this](limiter::Check& check) {
    // The remaining count identifies the answer.
    const std::string_view user = check.request.descriptors[0][0].value;
    AddVerdict(check, 0, "p", &minute_, Allowed(10, user == "two" ? 2 : 1, seconds(1)));
  });
  limiter_->AnswerLater();
  const std::string path(kShouldRateLimitPath);
  std::vector<std::int32_t> ids;
  for (const char* value : {"zero", "one", "two"}) {
    RateLimitRequest request;
    request.set_domain("api");
    AddDescriptor(request, "user", value);
    ids.push_back(client_->Call(path, Framed(request)));
    client_->Exchange(*server_);
  }
  client_->Cancel(ids[1]);
  client_->Exchange(*server_);
  limiter_->Complete(2);
  limiter_->Complete(1);  // its call has ended
  client_->Exchange(*server_);
  EXPECT_FALSE(client_->answer(ids[0]).closed);
  EXPECT_EQ(Parsed(client_->answer(ids[2])).statuses(0).limit_remaining(), 2U);
  EXPECT_GE(outputs_, 1);
  server_.reset();
  limiter_->Complete(0);  // its connection has closed
}

}  // namespace
}  // namespace weir::grpc::testing
