#include "protocol/grpc/rlqs.h"

#include "envoy/service/rate_limit_quota/v3/rlqs.pb.h"
#include "unit/protocol/grpc/fake_limiter.h"
#include "unit/protocol/grpc/session_fixture.h"

namespace weir::grpc::testing {
namespace {

using envoy::service::rate_limit_quota::v3::RateLimitQuotaResponse;
using envoy::service::rate_limit_quota::v3::RateLimitQuotaUsageReports;
using envoy::type::v3::RateLimitStrategy;
using BucketText = std::map<std::string, std::string>;

const Quota kQuota = *Quota::TokenBucket(1000, 100);

class RlqsTest : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    Serve({});
  }
  ~RlqsTest() override { server_.reset(); }

  void Serve(const QuotaBounds& bounds) {
    streams_.emplace(limiter_, assignments_, clock_, bounds);
    services_.Add(std::string(kStreamRateLimitQuotasPath), MakeStreamRateLimitQuotas(*streams_));
  }

  static std::string Report(const std::string& domain, const std::vector<BucketText>& buckets,
                            std::uint64_t denied = 1, int seconds = 0) {
    RateLimitQuotaUsageReports reports;
    reports.set_domain(domain);
    for (const BucketText& bucket : buckets) {
      auto& usage = *reports.add_bucket_quota_usages();
      for (const auto& [name, value] : bucket) {
        (*usage.mutable_bucket_id()->mutable_bucket())[name] = value;
      }
      usage.mutable_time_elapsed()->set_seconds(seconds);
      usage.set_num_requests_denied(denied);
    }
    return Framed(reports);
  }

  std::int32_t Open(const std::string& body) {
    const std::int32_t id =
        client_->Call(std::string(kStreamRateLimitQuotasPath), body, {}, /*keep_open=*/true);
    client_->Exchange(*server_);
    return id;
  }
  void Send(std::int32_t id, const std::string& body) {
    client_->Send(id, body);
    client_->Exchange(*server_);
  }
  void Tick(std::chrono::milliseconds after = std::chrono::seconds(1)) {
    clock_.Advance(after);
    streams_->Tick();
    client_->Exchange(*server_);
  }

  std::vector<RateLimitQuotaResponse> Responses(std::int32_t id) {
    std::vector<RateLimitQuotaResponse> responses;
    for (const std::string& message : client_->answer(id).messages()) {
      EXPECT_TRUE(responses.emplace_back().ParseFromString(message));
    }
    return responses;
  }
  RateLimitQuotaResponse::BucketAction Last(std::int32_t id) {
    const auto responses = Responses(id);
    EXPECT_FALSE(responses.empty());
    return responses.empty() ? RateLimitQuotaResponse::BucketAction()
                             : responses.back().bucket_action(0);
  }

  Status status_;
  bool grant_ = true;
  bool applies_ = true;
  std::int64_t remaining_ = 1000;
  FakeLimiter limiter_{[this](limiter::Check& check) {
    check.status = status_;
    check.verdicts.clear();
    check.decision = {};
    if (!applies_ || !status_.ok()) return;
    check.decision.limit = 1000;
    check.decision.remaining = remaining_;
    if (check.op == store::Op::kCharge && !grant_) check.decision.verdict = Verdict::kLimited;
    AddVerdict(check, 0, "per-user", &kQuota, check.decision);
  }};
  limiter::Assignments assignments_;
  std::optional<QuotaStreams> streams_;
};

TEST_F(RlqsTest, AssignsATokenBucketThatEnvoyUnderstands) {
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}, {"plan", "gold"}}}));
  ASSERT_EQ(Responses(id).size(), 1U);
  const auto action = Last(id);
  EXPECT_EQ(action.bucket_id().bucket().at("user"), "anna");
  EXPECT_EQ(action.bucket_id().bucket().at("plan"), "gold");
  const auto& assignment = action.quota_assignment_action();
  EXPECT_EQ(assignment.assignment_time_to_live().seconds(), 3);
  EXPECT_EQ(assignment.assignment_time_to_live().nanos(), 0);
  const auto& bucket = assignment.rate_limit_strategy().token_bucket();
  EXPECT_EQ(bucket.max_tokens(), 100U);
  EXPECT_EQ(bucket.tokens_per_fill().value(), 100U);
  EXPECT_EQ(bucket.fill_interval().seconds(), 1);
  EXPECT_EQ(bucket.fill_interval().nanos(), 0);
}

TEST_F(RlqsTest, TheIdsEntriesAreADescriptorInTheOrderOfTheirNames) {
  Open(Report("api", {{{"user", "anna"}, {"plan", "gold"}}}));
  const Asked& asked = limiter_.asked().back();
  EXPECT_EQ(asked.domain, "api");
  ASSERT_EQ(asked.descriptors.size(), 1U);
  const std::vector<std::pair<std::string, std::string>> wanted = {{"plan", "gold"},
                                                                   {"user", "anna"}};
  EXPECT_EQ(asked.descriptors[0], wanted);
  EXPECT_EQ(asked.op, store::Op::kCharge);
  EXPECT_EQ(asked.cost, 225);
}

TEST_F(RlqsTest, PushesEveryAssignmentAgainEachSecond) {
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}}, {{"user", "ben"}}}));
  for (int i = 0; i < 5; ++i) Tick();
  ASSERT_EQ(Responses(id).size(), 6U);
  for (const auto& response : Responses(id)) EXPECT_EQ(response.bucket_action_size(), 2);
  EXPECT_EQ(limiter_.asked().back().cost, 100);
  EXPECT_EQ(assignments_.totals().streams, 1);
}

TEST_F(RlqsTest, WithNothingLeftEverythingIsDenied) {
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}}}));
  grant_ = false;
  remaining_ = 0;
  Tick();
  const RateLimitStrategy strategy = Last(id).quota_assignment_action().rate_limit_strategy();
  EXPECT_TRUE(strategy.has_blanket_rule());
  EXPECT_EQ(strategy.blanket_rule(), RateLimitStrategy::DENY_ALL);
}

TEST_F(RlqsTest, WhatNoPolicyLimitsGetsALargeBucketAndIsNotCharged) {
  applies_ = false;
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}}}));
  Tick();
  EXPECT_EQ(Last(id).quota_assignment_action().rate_limit_strategy().token_bucket().max_tokens(),
            1'000'000'000U);
  for (const Asked& asked : limiter_.asked()) EXPECT_EQ(asked.op, store::Op::kPeek);
  applies_ = true;  // a policy is added
  Tick();
  EXPECT_EQ(Last(id).quota_assignment_action().rate_limit_strategy().token_bucket().max_tokens(),
            100U);
}

TEST_F(RlqsTest, AbandonsWhatNobodyAsksFor) {
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}}}));
  for (int i = 0; i < 16; ++i) Tick();
  EXPECT_TRUE(Last(id).has_abandon_action());
  EXPECT_EQ(streams_->buckets(), 0U);
  const std::size_t before = Responses(id).size();
  Tick();
  EXPECT_EQ(Responses(id).size(), before);
  Send(id, Report("", {{{"user", "anna"}}}));
  EXPECT_TRUE(Last(id).has_quota_assignment_action());
}

TEST_F(RlqsTest, ChargesWhatACutOffEnvoyMaySpend) {
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}}}));
  client_->Cancel(id);
  client_->Exchange(*server_);
  EXPECT_EQ(streams_->streams(), 0U);
  EXPECT_EQ(limiter_.asked().back().op, store::Op::kOverdraw);
  EXPECT_EQ(limiter_.asked().back().cost, 200);
  EXPECT_EQ(assignments_.totals().tails, 200U);
}

TEST_F(RlqsTest, ALostConnectionIsChargedWithTheNextTick) {
  Open(Report("api", {{{"user", "anna"}}}));
  EXPECT_FALSE(streams_->owing());
  server_.reset();
  EXPECT_NE(limiter_.asked().back().op, store::Op::kOverdraw);
  EXPECT_TRUE(streams_->owing());
  clock_.Advance(std::chrono::seconds(1));
  limiter_.AnswerLater();
  streams_->Tick();
  EXPECT_EQ(limiter_.asked().back().op, store::Op::kOverdraw);
  EXPECT_TRUE(streams_->owing());  // a service that shuts down waits for the answer
  limiter_.Complete(0);
  EXPECT_FALSE(streams_->owing());
  Restart({});
}

TEST_F(RlqsTest, AnswersThatComeAfterTheEndAreNotSent) {
  limiter_.AnswerLater();
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}}}));
  client_->Cancel(id);
  client_->Exchange(*server_);
  limiter_.Complete(0);
  EXPECT_EQ(streams_->buckets(), 0U);
  EXPECT_TRUE(Responses(id).empty());
}

TEST_F(RlqsTest, WhileTheStoreIsSlowNothingIsAskedTwice) {
  limiter_.AnswerLater();
  Open(Report("api", {{{"user", "anna"}}}));
  const std::size_t asked = limiter_.asked().size();
  Tick();
  Tick();
  EXPECT_EQ(limiter_.asked().size(), asked);
}

TEST_F(RlqsTest, ShowsWhatIsAssigned) {
  Open(Report("api", {{{"user", "anna"}, {"plan", "gold"}}}));
  const std::array<policy::Entry, 2> entries = {{{"user", "anna"}, {"plan", "gold"}}};
  const auto found = assignments_.Find("api", entries, 10);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]->per_second, 100);
  EXPECT_TRUE(assignments_.Find("other", entries, 10).empty());
  EXPECT_TRUE(assignments_.Find("api", std::span(entries).first(1), 10).empty());
}

TEST_F(RlqsTest, RefusesMalformedReports) {
  const auto status = [this](const std::string& body) {
    return client_->answer(Open(body)).status();
  };
  EXPECT_EQ(status(Framed(std::string_view("\xff\xff"))), "3");
  EXPECT_EQ(status(Report("", {{{"user", "anna"}}})), "3");
  EXPECT_EQ(status(Report(std::string(300, 'd'), {})), "3");
  EXPECT_EQ(streams_->streams(), 0U);
  EXPECT_EQ(streams_->buckets(), 0U);
}

// A client of an Envoy may choose a part of an id. It must not end the stream, which carries the
// assignments of all others.
TEST_F(RlqsTest, ABucketThatCannotBeAssignedLeavesTheOthersTheirAssignments) {
  BucketText many;
  for (int i = 0; i < 17; ++i) many["name" + std::to_string(i)] = "value";
  const std::vector<BucketText> bad = {
      {}, {{"user", std::string(2000, 'u')}}, {{"user", "\xff"}}, many};
  std::int32_t id = 0;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const std::string good = "anna" + std::to_string(i);
    const std::string report = Report("api", {bad[i], {{"user", good}}});
    if (i == 0) id = Open(report);
    if (i > 0) Send(id, report);
    EXPECT_EQ(client_->answer(id).status(), "") << client_->answer(id).message();
    const auto responses = Responses(id);
    ASSERT_EQ(responses.back().bucket_action_size(), 1);
    EXPECT_EQ(responses.back().bucket_action(0).bucket_id().bucket().at("user"), good);
    EXPECT_EQ(assignments_.totals().turned_away.load(), i + 1);
  }
  EXPECT_EQ(streams_->buckets(), bad.size());
}

// Envoy reports all buckets that it knows in one message. A rejected one must be removed, or the
// message grows until it is too large to be read.
TEST_F(RlqsTest, EnvoyForgetsABucketThatCannotBeAssigned) {
  const std::string large(60'000, 'u');
  const std::int32_t id = Open(Report("api", {{{"user", large}}, {{"user", "\xff"}}}));
  const auto responses = Responses(id);
  ASSERT_EQ(responses.size(), 1U);
  ASSERT_EQ(responses[0].bucket_action_size(), 1) << "Envoy could not read the other one's id";
  EXPECT_TRUE(responses[0].bucket_action(0).has_abandon_action());
  EXPECT_EQ(responses[0].bucket_action(0).bucket_id().bucket().at("user"), large);
}

TEST_F(RlqsTest, AReportThatIsTooLargeIsPassedOverAndTheStreamGoesOn) {
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}}}));
  Send(id, Report("api", {{{"user", std::string(600'000, 'u')}}, {{"user", "ben"}}}));
  Send(id, Report("api", std::vector<BucketText>(60'000)));  // with too many parts
  EXPECT_EQ(client_->answer(id).status(), "") << client_->answer(id).message();
  EXPECT_EQ(assignments_.totals().turned_away.load(), 2U);
  Send(id, Report("api", {{{"user", "ben"}}}));
  EXPECT_EQ(Last(id).bucket_id().bucket().at("user"), "ben");
  EXPECT_EQ(streams_->buckets(), 2U);
}

TEST_F(RlqsTest, TheDomainOfAStreamDoesNotChange) {
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}}}));
  Send(id, Report("api", {{{"user", "ben"}}}));
  EXPECT_EQ(client_->answer(id).status(), "");
  Send(id, Report("other", {{{"user", "ben"}}}));
  EXPECT_EQ(client_->answer(id).status(), "3");
}

TEST_F(RlqsTest, BoundsStreamsAndBuckets) {
  const auto asked = [this] { return assignments_.totals().turned_away.load(); };
  streams_.reset();
  services_ = Services();
  Serve({.max_streams = 2, .max_buckets_per_stream = 2, .max_buckets = 3});
  const std::int32_t one = Open(Report("api", {{{"a", "1"}}, {{"a", "2"}}, {{"a", "3"}}}));
  EXPECT_EQ(Responses(one).at(0).bucket_action(0).bucket_id().bucket().at("a"), "3");
  EXPECT_TRUE(Responses(one).at(0).bucket_action(0).has_abandon_action());
  EXPECT_EQ(Responses(one).at(1).bucket_action_size(), 2);
  EXPECT_EQ(asked(), 1U);
  const std::int32_t two = Open(Report("api", {{{"a", "1"}}, {{"a", "2"}}}));
  EXPECT_EQ(Responses(two).at(1).bucket_action_size(), 1);
  EXPECT_EQ(asked(), 2U);
  EXPECT_EQ(client_->answer(Open(Report("api", {{{"a", "1"}}}))).status(), "8");
  EXPECT_EQ(asked(), 3U);
}

TEST_F(RlqsTest, AnEnvoyThatDoesNotReadIsCutOff) {
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}}}));
  // The client's side is not run, so nothing leaves the session.
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(std::chrono::seconds(1));
    streams_->Tick();
  }
  EXPECT_EQ(streams_->streams(), 0U);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).status(), "14");
}

TEST_F(RlqsTest, RequestsThatAreTooManyToCountAreManyAllTheSame) {
  RateLimitQuotaUsageReports reports;
  reports.set_domain("api");
  auto& usage = *reports.add_bucket_quota_usages();
  (*usage.mutable_bucket_id()->mutable_bucket())["user"] = "anna";
  usage.mutable_time_elapsed()->set_seconds(1);
  usage.set_num_requests_allowed(~std::uint64_t{0});
  usage.set_num_requests_denied(1);
  Open(Framed(reports));
  const std::array<policy::Entry, 1> entries = {{{"user", "anna"}}};
  const auto found = assignments_.Find("api", entries, 10);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]->demand, limiter::kUnlimitedPerSecond - 1);
}

TEST_F(RlqsTest, WhileTheStoreFailsNothingIsAssignedOrCharged) {
  status_ = Error{Code::kUnavailable, "the store does not answer"};
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}}}));
  EXPECT_EQ(Last(id).quota_assignment_action().rate_limit_strategy().blanket_rule(),
            RateLimitStrategy::DENY_ALL);
  EXPECT_TRUE(Last(id).quota_assignment_action().rate_limit_strategy().has_blanket_rule());
  EXPECT_EQ(assignments_.totals().charged, 0U);
  status_ = {};
  Tick();
  EXPECT_TRUE(Last(id).quota_assignment_action().rate_limit_strategy().has_token_bucket());
}

TEST_F(RlqsTest, ManyBucketsAreLookedAfterInTurns) {
  std::vector<std::int32_t> ids;
  for (int stream = 0; stream < 4; ++stream) {
    std::vector<BucketText> buckets;
    for (int i = 0; i < 400; ++i) buckets.push_back({{"user", std::to_string(i)}});
    ids.push_back(Open(Report("api", buckets)));
  }
  ASSERT_EQ(streams_->buckets(), 1'600U);
  const auto asked_in = [this](const auto& work) {
    const std::size_t before = limiter_.asked().size();
    const bool more = work();
    EXPECT_LE(limiter_.asked().size() - before, 256U);
    return more;
  };
  clock_.Advance(std::chrono::seconds(1));
  const std::size_t before = limiter_.asked().size();
  bool more = asked_in([this] { return streams_->Tick(); });
  EXPECT_TRUE(more);
  while (more) more = asked_in([this] { return streams_->Turn(); });
  EXPECT_EQ(limiter_.asked().size() - before, 1'600U);
  // The same for unused assignments, and for those left by a lost connection.
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(streams_->Tick());
  server_.reset();
  more = true;
  while (more) more = asked_in([this] { return streams_->Turn(); });
  EXPECT_EQ(limiter_.asked().back().op, store::Op::kOverdraw);
  EXPECT_EQ(streams_->buckets(), 0U);
  Restart({});
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}}}));
  EXPECT_FALSE(Responses(id).empty());
}

TEST_F(RlqsTest, ReportsWithoutEndAreBounded) {
  const std::int32_t id = Open(Report("api", {{{"user", "anna"}}}));
  for (int i = 0; i < 1000; ++i) {
    Send(id, Report("api", {{{"user", "anna"}}}, ~std::uint64_t{0}, i % 3 - 1));
  }
  EXPECT_EQ(streams_->buckets(), 1U);
  Tick();
  EXPECT_TRUE(Last(id).has_quota_assignment_action());
}

}  // namespace
}  // namespace weir::grpc::testing
