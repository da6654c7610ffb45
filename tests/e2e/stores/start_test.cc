// A service, and a proxy, that start while their store is down: they refuse to start, or they start
// without it and are exact as soon as it is up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/http_client.h"
#include "support/stopwatch.h"
#include "support/store_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kPolicies = R"(
policies:
  - { name: day, match: {}, quota: { fixed_window: { limit: 20, window: 3650d } }, on_store_error: local }
)";
constexpr const char* kBody = R"({"descriptors":[{"user":"u"}]})";

class StartTest : public ::testing::TestWithParam<std::string> {
 protected:
  StartTest() : store_(StoreServer::Make(GetParam())) {
    policies_ = dir_.Write("policies.yaml", kPolicies);
    store_->Kill();
  }

  std::vector<std::string> Args(std::vector<std::string> args) const {
    const std::vector<std::string> more = {"--store", store_->url(), "--store-timeout",
                                           "250ms",   "--policies",  policies_,
                                           "--data",  dir_ / "data"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  std::vector<std::string> Serve(const std::vector<std::string>& more = {}) const {
    // Policies are in a file: storage for those of the admin API has separate tests.
    std::vector<std::string> args = {"serve",  "--http", "127.0.0.1:0",    "--grpc", "off",
                                     "--resp", "off",    "--policy-store", "sqlite:"};
    args.insert(args.end(), more.begin(), more.end());
    return Args(args);
  }
  static void ExpectRefusal(WeirProcess& weir, const std::string& scheme) {
    // It waits a while for a store that is just starting.
    EXPECT_EQ(weir.process().Wait(20s), 1);
    EXPECT_THAT(weir.process().error_output(), HasSubstr("store: " + scheme));
    EXPECT_THAT(weir.process().error_output(), HasSubstr(" not responding: "));
    EXPECT_THAT(weir.process().output(), Not(HasSubstr("listening")));
  }

  TempDir dir_;
  std::unique_ptr<StoreServer> store_;
  std::string policies_;
};

TEST_P(StartTest, RefusesWithoutAStoreThatIsRequired) {
  const std::string scheme = store_->url().substr(0, store_->url().find("://"));
  WeirProcess service(Serve({"--store-required", "true"}));
  WeirProcess proxy(Args({"proxy", "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0",
                          "--store-required", "true", "--policy-store", "sqlite:"}));
  ExpectRefusal(service, scheme);
  ExpectRefusal(proxy, scheme);
}

TEST_P(StartTest, BeginsWithoutItAndIsExactWhenItComes) {
  WeirProcess weir(Serve());
  HttpClient client(weir.Port("http"));
  EXPECT_TRUE(weir.process().WaitForError("started without the store"));
  EXPECT_EQ(client.Get("/readyz").status, 200);
  EXPECT_THAT(client.Get("/readyz").body, HasSubstr("degraded"));
  EXPECT_THAT(client.Get("/admin/status").body, HasSubstr(R"({"status":"DEGRADED",)"));
  EXPECT_THAT(client.Get("/admin/status").body, HasSubstr(R"("down":["store"])"));
  // A tenth of 20 is this node's share.
  for (int i = 0; i < 4; ++i) {
    const HttpResponse answer = client.Post("/v1/check", kBody);
    EXPECT_THAT(answer.body, HasSubstr(i < 2 ? R"("allowed":true)" : R"("allowed":false)"));
    EXPECT_EQ(answer.Header("X-RateLimit-Degraded"), "local");
  }
  store_->Start();
  const Stopwatch watch;
  const auto exact = [&] {
    return client.Post("/v1/peek", kBody).body.find("degraded") == std::string::npos;
  };
  ASSERT_TRUE(WaitUntil(exact));
  EXPECT_LT(watch.elapsed(), 1s + 100ms);  // a second is promised
  // What was granted without the store is not counted there: it was beyond the quota, like a local
  // share.
  int allowed = 0;
  for (int i = 0; i < 25; ++i) {
    const HttpResponse answer = client.Post("/v1/check", kBody);
    EXPECT_FALSE(answer.HasHeader("X-RateLimit-Degraded"));
    if (answer.body.find(R"("allowed":true)") != std::string::npos) ++allowed;
  }
  EXPECT_EQ(allowed, 20);
  EXPECT_THAT(client.Get("/readyz").body, Not(HasSubstr("degraded")));
  EXPECT_THAT(client.Get("/admin/status").body, HasSubstr(R"({"status":"UP",)"));
}

TEST_P(StartTest, OneThatIsRequiredMakesItReadyAndUnready) {
  store_->Start();
  WeirProcess weir(Serve({"--store-required", "true"}));
  HttpClient client(weir.Port("http"));
  EXPECT_EQ(client.Get("/readyz").status, 200);
  store_->Kill();
  // No requests: the service monitors its store by itself.
  EXPECT_TRUE(WaitUntil([&] { return client.Get("/readyz").status == 503; }));
  EXPECT_EQ(client.Get("/healthz").status, 200);
  store_->Start();
  EXPECT_TRUE(WaitUntil([&] { return client.Get("/readyz").status == 200; }));
}

TEST(PlaintextStores, AreNamedAtTheStart) {
  const TempDir dir;
  // No such host exists, so nothing is sent anywhere.
  const std::string url = "mysql://weir:hidden@db.invalid/weir";
  WeirProcess weir({"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--data",
                    dir / "data", "--store", url, "--policy-store", "sqlite:", "--slots-store",
                    "postgres://weir@slots.invalid/weir?tls=off"});
  (void)weir.Port("http");
  EXPECT_TRUE(weir.process().WaitForError("started without the store"));
  const std::string log = weir.process().error_output();
  EXPECT_THAT(log, HasSubstr("store: the connection to db.invalid is in plaintext"));
  EXPECT_THAT(log, Not(HasSubstr("slots.store: the connection")));
  EXPECT_THAT(log, Not(HasSubstr("hidden")));
}

INSTANTIATE_TEST_SUITE_P(Stores, StartTest, ::testing::Values("redis", "postgres"),
                         [](const auto& store) { return store.param; });

}  // namespace
}  // namespace weir::test
