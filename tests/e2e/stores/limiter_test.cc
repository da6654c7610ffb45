// weir::Limiter next to the service: whichever decides, the answers and the buckets are the same.

#include "weir/limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/and_mysql.h"
#include "support/http_client.h"
#include "support/store_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using test::WaitUntil;

constexpr const char* kPolicies =
    "policies:\n"
    "  - {name: user, match: {user: \"*\"}, quota: {fixed_window: {limit: 20, window: 1000d}}}\n"
    "  - {name: pay, match: {user: \"*\", route: /pay*}, quota: {fixed_window: {limit: 5, window: "
    "1000d}}}\n"
    "  - {name: try, match: {route: \"*\"}, shadow: true, quota: {fixed_window: {limit: 2, window: "
    "1000d}}}\n"
    "  - {name: jobs, match: {job: \"*\"}, quota: {concurrency: {limit: 2, lease: 1h}}}\n";

test::WeirProcess Serve(const test::TempDir& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"serve",  "--http", "127.0.0.1:0", "--grpc",     "off",
                                    "--resp", "off",    "--data",      folder.path()};
  words.insert(words.end(), more.begin(), more.end());
  return test::WeirProcess(words);
}

Limiter OpenService(std::uint16_t port) {
  auto limiter = Limiter::Open({.mode = LimiterOptions::Mode::kService,
                                .service = "http://127.0.0.1:" + std::to_string(port),
                                .timeout = 10s});
  EXPECT_TRUE(limiter.ok());
  return std::move(*limiter);
}

TEST(Limiters, ServiceAndProgramDecideTheSame) {
  const test::TempDir folder;
  const std::string file = folder.Write("p.yaml", kPolicies).string();
  test::WeirProcess weir = Serve(folder, {"--policies", file});
  Limiter service = OpenService(weir.Port("http"));
  auto embedded = Limiter::Open({.policies = {file}});
  ASSERT_TRUE(embedded.ok()) << embedded.error().message;
  std::mt19937 random(7);
  const auto pick = [&random](int below) { return static_cast<int>(random() % below); };
  for (int i = 0; i < 600; ++i) {
    const std::string user = std::to_string(pick(5));
    const std::vector<LimitEntry> entries = {{"user", user},
                                             {"route", pick(2) == 0 ? "/pay" : "/x"}};
    const LimitRequest request{.entries = entries, .cost = pick(4)};
    const int op = pick(6);
    const auto ask = [&](Limiter& limiter) {
      return op == 0   ? limiter.Peek(request)
             : op == 1 ? limiter.Refund(request)
             : op == 2 ? limiter.Overdraw(request)
                       : limiter.Check(request);
    };
    const auto a = ask(service);
    const auto b = ask(*embedded);
    ASSERT_EQ(a.ok(), b.ok()) << i << ": " << (a.ok() ? b : a).error().message;
    if (!a.ok()) {
      ASSERT_EQ(a.error().code, b.error().code) << a.error().message;
      continue;
    }
    ASSERT_EQ(a->allowed(), b->allowed()) << i;
    ASSERT_EQ(a->decision.verdict, b->decision.verdict) << i;
    ASSERT_EQ(a->decision.remaining, b->decision.remaining) << i;
    ASSERT_EQ(a->decision.limit, b->decision.limit) << i;
    ASSERT_EQ(a->policy, b->policy) << i;
  }
}

TEST(Limiters, ThroughTheServicePermitsAreReleased) {
  const test::TempDir folder;
  test::WeirProcess weir =
      Serve(folder, {"--policies", folder.Write("p.yaml", kPolicies).string()});
  Limiter limiter = OpenService(weir.Port("http"));
  const std::vector<LimitEntry> job = {{"job", "\"odd\" \x01 name"}};
  const LimitRequest request{.entries = job};
  const auto first = limiter.Check(request);
  ASSERT_TRUE(first->allowed());
  ASSERT_TRUE(limiter.Check(request)->allowed());
  ASSERT_FALSE(limiter.Check(request)->allowed());
  EXPECT_TRUE(*limiter.Release(request, first->leases));
  EXPECT_FALSE(*limiter.Release(request, first->leases));
  EXPECT_TRUE(limiter.health().ok());
}

TEST(Limiters, ThroughTheServiceAnEstimateIsSettled) {
  const test::TempDir folder;
  test::WeirProcess weir =
      Serve(folder, {"--policies", folder.Write("p.yaml", kPolicies).string()});
  Limiter limiter = OpenService(weir.Port("http"));
  const std::vector<LimitEntry> job = {{"job", "j"}};
  const LimitRequest request{.entries = job};
  const auto reserved = limiter.Reserve(request, 1min);
  ASSERT_TRUE(reserved.ok()) << reserved.error().message;
  ASSERT_FALSE(reserved->reservation.empty());
  EXPECT_EQ(reserved->answer.decision.remaining, 1);
  const auto settled = limiter.Settle(reserved->reservation, 1);
  ASSERT_TRUE(settled.ok()) << settled.error().message;
  EXPECT_TRUE(settled->settled);
  EXPECT_EQ(settled->standing.decision.remaining, 2);  // the permit is back
  EXPECT_FALSE(limiter.Settle(reserved->reservation, 1)->settled);
  EXPECT_EQ(limiter.Settle("x", 1).error().code, Code::kInvalidArgument);
}

class SharedLimits : public ::testing::TestWithParam<std::string> {};

TEST_P(SharedLimits, AProgramSharesBucketsAndPoliciesWithTheServices) {
  const auto server = test::StoreServer::Make(GetParam());
  const test::TempDir folder;
  test::WeirProcess weir = Serve(folder, {"--store", server->url(), "--store-timeout", "5s"});
  test::HttpClient http(weir.Port("http"));
  // As a program reads the configuration of the service.
  const std::string config =
      folder
          .Write("weir.yaml", "mode: embedded\nstore: \"" + server->url() +
                                  "\"\nstore_timeout: 5s\nstore_required: true\n")
          .string();
  auto limiter = Limiter::FromConfig(config);
  ASSERT_TRUE(limiter.ok()) << limiter.error().message;
  EXPECT_EQ(http.Post("/admin/policies",
                      R"({"name":"k","quota":{"fixed_window":{"limit":3,"window":"1000d"}}})")
                .status,
            201);
  EXPECT_TRUE(WaitUntil([&] { return limiter->Check("k", 0)->decision.limit == 3; }));
  EXPECT_EQ(http.Post("/v1/check", R"({"key":"k","cost":2})").status, 200);
  EXPECT_EQ(limiter->Check("k")->decision.remaining, 0);
  EXPECT_FALSE(limiter->Check("k")->allowed());
}

INSTANTIATE_TEST_SUITE_P(Stores, SharedLimits,
                         ::testing::ValuesIn(test::AndMysql({"redis", "redis_cluster", "postgres",
                                                             "mariadb"})),
                         [](const auto& store) { return store.param; });

TEST(Limiters, SeveralStoresOfAConfigurationAreThoseOfTheService) {
  const auto main = test::StoreServer::Make("postgres");
  const auto hot = test::StoreServer::Make("redis");
  const test::TempDir folder;
  folder.Write("p.yaml",
               "policies:\n"
               "  - {name: cold, key: cold, quota: {fixed_window: {limit: 4, window: 1000d}}}\n"
               "  - {name: hot, key: hot, store: hot, quota: {fixed_window: {limit: 4, window: "
               "1000d}}}\n"
               "  - {name: moved, key: moved, quota: {fixed_window: {limit: 4, window: 1000d}}}\n");
  const auto written = [&](const std::string& more) {
    return folder
        .Write("weir.yaml", "stores: {main: \"" + main->url() + "\", hot: \"" + hot->url() +
                                "\"}\nstore: main\nstore_timeout: 5s\nstore_required: true\n"
                                "policies: [p.yaml]\n" +
                                more)
        .string();
  };
  test::WeirProcess weir = Serve(folder, {"--config", written("")});
  test::HttpClient http(weir.Port("http"));
  auto limiter = Limiter::FromConfig(written(""));
  ASSERT_TRUE(limiter.ok()) << limiter.error().message;
  for (const char* const key : {"cold", "hot", "moved"}) {
    EXPECT_EQ(http.Post("/v1/check", std::string(R"({"key":")") + key + R"(","cost":2})").status,
              200);
    EXPECT_EQ(limiter->Check(key)->decision.remaining, 1) << key;
  }
  // The next version of the program moves the keys of one policy, with what they have used.
  limiter = Limiter::FromConfig(written("move: {from: main, to: hot, share: 100%}\n"));
  ASSERT_TRUE(limiter.ok()) << limiter.error().message;
  EXPECT_EQ(limiter->Check("moved")->decision.remaining, 0);
  EXPECT_FALSE(limiter->Check("moved")->allowed());
  limiter = Limiter::FromConfig(written("move: {from: main, to: hot, share: 100%, done: 100%}\n"));
  ASSERT_TRUE(limiter.ok()) << limiter.error().message;
  EXPECT_FALSE(limiter->Check("moved")->allowed());
}

TEST(Limiters, TheConfigurationSaysWhoDecides) {
  const test::TempDir folder;
  test::WeirProcess weir = Serve(folder);
  const std::string config =
      folder
          .Write("weir.yaml", "mode: service\nservice: http://127.0.0.1:" +
                                  std::to_string(weir.Port("http")) + "\nstore_timeout: 10s\n")
          .string();
  auto limiter = Limiter::FromConfig(config);
  ASSERT_TRUE(limiter.ok()) << limiter.error().message;
  EXPECT_EQ(limiter->Check("u", 60)->decision.remaining, 40);
  test::HttpClient http(weir.Port("http"));
  EXPECT_THAT(http.Get("/admin/metrics/u").body, ::testing::HasSubstr("\"status\":\"OK\""));
  // In the program itself: all 100 are there, of which the service has 40 left.
  auto embedded = Limiter::FromConfig(folder.Write("own.yaml", "mode: embedded\n").string());
  ASSERT_TRUE(embedded.ok()) << embedded.error().message;
  EXPECT_EQ(embedded->Check("u", 60)->decision.remaining, 40);
  EXPECT_EQ(limiter->Check("u", 40)->decision.verdict, Verdict::kAllowed);
  const std::string wrong = folder.Write("wrong.yaml", "mode: both\n").string();
  EXPECT_EQ(Limiter::FromConfig(wrong).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace weir
