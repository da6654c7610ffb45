// weir::Limiter in this process.

#include "weir/limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/redis_server.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "telemetry/log.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using test::WaitUntil;
using ::testing::HasSubstr;

constexpr const char* kPolicies =
    "domain: api\n"
    "policies:\n"
    "  - {name: per-user, match: {user: \"*\"}, quota: {fixed_window: {limit: 3, window: 100d}}}\n"
    "  - {name: pay, match: {user: \"*\", route: /v1/pay}, quota: {sliding_log: {limit: 1, window: "
    "1h}}}\n"
    "  - {name: vip, key: vip, quota: {token_bucket: {capacity: 500, refill_per_second: 1}}}\n"
    "  - {name: jobs, match: {job: \"*\"}, quota: {concurrency: {limit: 1, lease: 1h}}}\n";

/// The same policies on two stores: in memory, and on a Redis.
class LimiterTest : public ::testing::TestWithParam<std::string> {
 protected:
  LimiterTest() {
    options_.policies = {file_};
    options_.timeout = 10s;
    if (GetParam() == "redis") {
      redis_ = std::make_unique<test::RedisServer>();
      options_.store = redis_->url();
    }
  }

  Limiter Open() {
    Result<Limiter> limiter = Limiter::Open(options_);
    if (!limiter.ok()) throw std::runtime_error(limiter.error().message);
    return std::move(*limiter);
  }

  test::TempDir folder_;
  std::string file_ = folder_.Write("p.yaml", kPolicies).string();
  std::unique_ptr<test::RedisServer> redis_;
  LimiterOptions options_;
};

INSTANTIATE_TEST_SUITE_P(Stores, LimiterTest, ::testing::Values("memory", "redis"),
                         [](const auto& one) { return one.param; });

TEST_P(LimiterTest, WritesNothingToTheLogOfItsProgram) {
  Limiter limiter = Open();
  ::testing::internal::CaptureStderr();
  const std::vector<LimitEntry> user = {{"user", "7"}};
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter.Check({.domain = "api", .entries = user}).ok());
  EXPECT_FALSE(limiter.Check({.domain = "api", .entries = user})->allowed());
  telemetry::FlushLog();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_P(LimiterTest, FollowsThePoliciesOfItsFiles) {
  Limiter limiter = Open();
  EXPECT_EQ(limiter.Check("vip")->decision.limit, 500);
  EXPECT_EQ(limiter.Check("vip")->policy, "vip");
  EXPECT_EQ(limiter.Check("somebody")->decision.limit, 100);  // the default policy
  const std::vector<LimitEntry> pay = {{"user", "42"}, {"route", "/v1/pay"}};
  const LimitRequest request{.domain = "api", .entries = pay};
  ASSERT_TRUE(limiter.Check(request)->allowed());
  const Result<LimitAnswer> refused = limiter.Check(request);
  EXPECT_FALSE(refused->allowed());
  EXPECT_EQ(refused->policy, "pay");
  EXPECT_GT(refused->decision.retry_after, 0ns);
  // If one policy denies, the other was not charged.
  const std::vector<LimitEntry> user = {{"user", "42"}};
  EXPECT_EQ(limiter.Peek({.domain = "api", .entries = user})->decision.remaining, 2);
  EXPECT_EQ(limiter.Refund({.domain = "api", .entries = user})->decision.remaining, 3);
  EXPECT_EQ(limiter.Overdraw({.domain = "api", .entries = user, .cost = 4})->allowed(), false);
  // No policy applies: nothing is limited.
  const std::vector<LimitEntry> other = {{"x", "y"}};
  EXPECT_EQ(limiter.Check({.domain = "api", .entries = other})->policy, "");
  EXPECT_EQ(limiter.policies().from_files, 4U);
}

TEST_P(LimiterTest, PermitsInFlightAreReleased) {
  Limiter limiter = Open();
  const std::vector<LimitEntry> job = {{"job", "j"}};
  const LimitRequest request{.domain = "api", .entries = job};
  const Result<LimitAnswer> first = limiter.Check(request);
  ASSERT_TRUE(first->allowed());
  ASSERT_FALSE(first->leases.empty());
  EXPECT_FALSE(limiter.Check(request)->allowed());
  EXPECT_TRUE(*limiter.Release(request, first->leases));
  EXPECT_FALSE(*limiter.Release(request, first->leases));
  EXPECT_TRUE(limiter.Check(request)->allowed());
  EXPECT_EQ(limiter.Release(request, "no").error().code, Code::kInvalidArgument);
}

TEST_P(LimiterTest, AnEstimateIsReservedAndSettledAtItsRealCost) {
  Limiter limiter = Open();
  const std::vector<LimitEntry> pay = {{"user", "42"}, {"route", "/v1/pay"}};
  const std::vector<LimitEntry> user = {{"user", "42"}};
  const LimitRequest request{.domain = "api", .entries = user, .cost = 2};
  const auto left = [&] {
    return limiter.Peek({.domain = "api", .entries = user, .cost = 0})->decision.remaining;
  };
  const Result<LimitReservation> reserved = limiter.Reserve(request);
  ASSERT_TRUE(reserved.ok()) << reserved.error().message;
  ASSERT_FALSE(reserved->reservation.empty());
  EXPECT_EQ(reserved->answer.decision.remaining, 1);
  // Two do not fit any more, and a denial returns nothing to settle.
  const Result<LimitReservation> refused =
      limiter.Reserve({.domain = "api", .entries = pay, .cost = 2});
  EXPECT_FALSE(refused->answer.allowed());
  EXPECT_EQ(refused->reservation, "");
  const Result<LimitSettlement> settled = limiter.Settle(reserved->reservation, 1);
  ASSERT_TRUE(settled.ok()) << settled.error().message;
  EXPECT_TRUE(settled->settled);
  EXPECT_EQ(settled->standing.decision.remaining, 2);
  EXPECT_EQ(left(), 2);
  EXPECT_FALSE(limiter.Settle(reserved->reservation, 0)->settled);
  EXPECT_EQ(left(), 2);
  // A settlement above the reservation counts whether it fits or not.
  const Result<LimitReservation> again = limiter.Reserve({.domain = "api", .entries = user});
  EXPECT_FALSE(limiter.Settle(again->reservation, 9)->standing.allowed());
  EXPECT_EQ(left(), 0);
  EXPECT_EQ(limiter.Settle("x", 0).error().code, Code::kInvalidArgument);
  EXPECT_EQ(limiter.Settle("", 0).error().code, Code::kInvalidArgument);
  EXPECT_EQ(limiter.Settle(reserved->reservation, -1).error().code, Code::kInvalidArgument);
  EXPECT_EQ(limiter.Reserve({.key = "vip", .cost = 0}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(limiter.Reserve(request, 25h).error().code, Code::kInvalidArgument);
}

TEST_P(LimiterTest, IsExactWhateverTheNumberOfThreads) {
  Limiter limiter = Open();
  std::atomic<int> allowed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const std::vector<LimitEntry> user = {{"user", "crowd"}};
      for (int n = 0; n < 50; ++n) {
        const auto answer = limiter.Check({.domain = "api", .entries = user});
        if (answer.ok() && answer->allowed()) ++allowed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed.load(), 3);
}

TEST_P(LimiterTest, FilesAreReadAgainWhenTheyChange) {
  std::atomic<int> reports{0};
  options_.report = [&](std::string_view, std::string_view) { ++reports; };
  Limiter limiter = Open();
  EXPECT_EQ(limiter.Check("vip")->decision.limit, 500);
  folder_.Write("p.yaml",
                "policies: [{name: vip, key: vip, quota: {fixed_window: {limit: 7, "
                "window: 1d}}}]\n");
  EXPECT_TRUE(WaitUntil([&] { return limiter.Check("vip", 0)->decision.limit == 7; }));
  // An invalid file changes nothing, and is reported.
  folder_.Write("p.yaml", "policies: [{name: vip, kee: vip}]\n");
  EXPECT_TRUE(WaitUntil([&] { return !limiter.policies().problem.empty(); }));
  EXPECT_THAT(limiter.policies().problem, HasSubstr("did you mean"));
  EXPECT_EQ(limiter.Check("vip", 0)->decision.limit, 7);
  EXPECT_TRUE(WaitUntil([&] { return reports >= 2; }));
}

TEST_P(LimiterTest, SaysWhatIsWrong) {
  Limiter limiter = Open();
  EXPECT_EQ(limiter.Check("").error().code, Code::kInvalidArgument);
  EXPECT_EQ(limiter.Check("u", -1).error().code, Code::kInvalidArgument);
  options_.policies = {folder_
                           .Write("bad.yaml",
                                  "policies: [{name: a, match: {v: '*-x'}, "
                                  "unlimited: true}]")
                           .string()};
  const Result<Limiter> bad = Limiter::Open(options_);
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().message, HasSubstr("bad.yaml:1:"));
  options_.policies.clear();
  options_.store = "carrier-pigeon://";
  EXPECT_EQ(Limiter::Open(options_).error().code, Code::kInvalidArgument);
}

TEST(EmbeddedLimiter, WhileTheStoreIsAwayThePolicyDecides) {
  test::RedisServer server;
  test::TempDir folder;
  const std::string file =
      folder
          .Write("p.yaml",
                 "policies:\n"
                 "  - {name: a, key: a, on_store_error: deny, quota: {fixed_window: {limit: 9, "
                 "window: 1d}}}\n"
                 "  - {name: b, key: b, on_store_error: allow, quota: {fixed_window: {limit: 9, "
                 "window: 1d}}}\n")
          .string();
  Result<Limiter> limiter =
      Limiter::Open({.store = server.url(), .policies = {file}, .timeout = 1s});
  ASSERT_TRUE(limiter.ok()) << limiter.error().message;
  ASSERT_TRUE(limiter->Check("a")->allowed());
  EXPECT_TRUE(limiter->health().ok());
  server.Kill();
  const Result<LimitAnswer> denied = limiter->Check("a");
  EXPECT_FALSE(denied->allowed());
  EXPECT_TRUE(denied->degraded);
  EXPECT_TRUE(limiter->Check("b")->allowed());
}

TEST(EmbeddedLimiter, PoliciesNameTheirStores) {
  test::RedisServer server;
  test::TempDir folder;
  const std::string file =
      folder
          .Write(
              "p.yaml",
              "policies:\n"
              "  - {name: cold, match: {user: \"*\"}, on_store_error: deny, quota: {fixed_window: "
              "{limit: 3, window: 100d}}}\n"
              "  - {name: hot, match: {user: \"*\", route: /pay}, store: hot, on_store_error: "
              "deny, quota: {fixed_window: {limit: 1, window: 100d}}}\n")
          .string();
  LimiterOptions options{
      .stores = {"main=memory:", "hot=" + server.url()}, .policies = {file}, .timeout = 5s};
  Result<Limiter> limiter = Limiter::Open(options);
  ASSERT_TRUE(limiter.ok()) << limiter.error().message;
  const std::vector<LimitEntry> user = {{"user", "42"}};
  const std::vector<LimitEntry> pay = {{"user", "42"}, {"route", "/pay"}};
  ASSERT_TRUE(limiter->Check({.entries = pay})->allowed());
  // All or none over both stores: if one denies, the other was not charged.
  EXPECT_EQ(limiter->Check({.entries = pay})->policy, "hot");
  EXPECT_EQ(limiter->Peek({.entries = user})->decision.remaining, 2);
  // State in Redis is there for the next program as well; state in memory is not.
  Result<Limiter> other = Limiter::Open(options);
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_EQ(other->Peek({.entries = user})->decision.remaining, 3);
  EXPECT_EQ(other->Check({.entries = pay})->policy, "hot");
  EXPECT_TRUE(limiter->health().ok());
  // If a store is down, the policies of the others still work.
  server.Kill();
  EXPECT_TRUE(WaitUntil([&] { return limiter->Check({.entries = pay})->degraded; }));
  EXPECT_TRUE(limiter->Check({.entries = user})->allowed());
  EXPECT_TRUE(WaitUntil([&] { return !limiter->health().ok(); }));
  EXPECT_THAT(limiter->health().error().message, HasSubstr("hot: "));
}

TEST(EmbeddedLimiter, SeveralStoresAreCheckedAsInTheConfiguration) {
  const auto problem = [](LimiterOptions options) {
    const Result<Limiter> limiter = Limiter::Open(std::move(options));
    EXPECT_EQ(limiter.error().code, Code::kInvalidArgument);
    return limiter.error().message;
  };
  EXPECT_THAT(problem({.store = "cold", .stores = {"hot=memory:"}}),
              HasSubstr("unknown store 'cold'; stores has hot"));
  EXPECT_THAT(problem({.store = "redis://localhost", .stores = {"hot=memory:"}}),
              HasSubstr("must be one of `stores`: hot"));
  EXPECT_THAT(problem({.stores = {"hot=carrier-pigeon://x"}}), HasSubstr("hot: "));
  test::TempDir folder;
  const std::string file =
      folder.Write("p.yaml", "policies: [{name: a, key: a, store: cold, unlimited: true}]\n")
          .string();
  EXPECT_THAT(problem({.stores = {"hot=memory:"}, .policies = {file}}), HasSubstr("cold"));
  EXPECT_TRUE(
      Limiter::Open({.store = "hot", .stores = {"main=memory:", "hot=memory:"}})->Check("u").ok());
}

TEST(ServiceLimiter, AServiceThatIsNotThereIsAnErrorAndNotARefusal) {
  using Mode = LimiterOptions::Mode;
  Result<Limiter> limiter =
      Limiter::Open({.mode = Mode::kService, .service = "http://127.0.0.1:1", .timeout = 5s});
  ASSERT_TRUE(limiter.ok());
  EXPECT_EQ(limiter->Check("u").error().code, Code::kUnavailable);
  EXPECT_FALSE(limiter->health().ok());
  EXPECT_EQ(Limiter::Open({.mode = Mode::kService, .service = "ftp://x"}).error().code,
            Code::kInvalidArgument);
}

// Like a service that dies after it has made the refund.
TEST(ServiceLimiter, ARefundWhoseAnswerIsLostIsNotSentAgain) {
  std::atomic<int> refunds = 0;
  const test::TcpServer service([&refunds](test::TcpConnection& connection) {
    for (;;) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      const std::string body = connection.ReadThrough("}");
      if (head.starts_with("POST /v1/refund")) {
        ++refunds;
        return;
      }
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"allowed\":true}");
    }
  });
  Result<Limiter> limiter =
      Limiter::Open({.mode = LimiterOptions::Mode::kService,
                     .service = "http://127.0.0.1:" + std::to_string(service.port()),
                     .timeout = 10s});
  ASSERT_TRUE(limiter.ok());
  ASSERT_TRUE(limiter->Check("u").ok());
  ASSERT_TRUE(limiter->Check("u").ok());
  EXPECT_EQ(service.accepted(), 1) << "checks share a connection";
  EXPECT_EQ(limiter->Refund({.key = "u"}).error().code, Code::kUnavailable);
  EXPECT_EQ(refunds, 1);
}

}  // namespace
}  // namespace weir
