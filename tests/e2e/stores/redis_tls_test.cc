// Two services that share limits through a Redis, or a cluster of them, that requires TLS and a
// password.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/certificates.h"
#include "support/http_client.h"
#include "support/redis_cluster.h"
#include "support/redis_server.h"
#include "support/stopwatch.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kAllowed = R"("allowed":true)";
constexpr const char* kPassword = "opensesame";

class RedisTlsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Serve(const std::string& url, const std::string& data) const {
    return {"serve",     "--http",           "127.0.0.1:0", "--grpc",  "off", "--resp",
            "off",       "--store-required", "true",        "--store", url,   "--data",
            dir_ / data, "--store-timeout",  "2s"};
  }

  static std::string Check(HttpClient& node, int cost) {
    return node.Post("/v1/check", R"({"key":"u","cost":)" + std::to_string(cost) + "}").body;
  }

  TempDir dir_;
  Certificates certificates_;
  RedisServer redis_{{.password = kPassword, .certificates = &certificates_}};
};

TEST_F(RedisTlsTest, TwoNodesShareLimitsAndTellEachOtherWhatToForget) {
  ASSERT_TRUE(redis_.url().starts_with("rediss://"));
  WeirProcess one(Serve(redis_.url(), "one"));
  WeirProcess other(Serve(redis_.url(), "other"));
  HttpClient first(one.Port("http"));
  HttpClient second(other.Port("http"));
  for (HttpClient* node : {&first, &second}) {
    ASSERT_TRUE(WaitUntil([&] {
      return node->Get("/metrics").body.find("weir_store_channel_up 1\n") != std::string::npos;
    }));
  }
  // The default policy: 100 at once, 10 a second; 60 and 100 do not fit.
  EXPECT_THAT(Check(first, 60), HasSubstr(kAllowed));
  EXPECT_THAT(Check(second, 100), Not(HasSubstr(kAllowed)));
  EXPECT_EQ(first.Post("/admin/reset/u", "").status, 200);
  // The second node caches its denial until it is notified.
  const Stopwatch watch;
  EXPECT_TRUE(WaitUntil([&] { return Check(second, 100).find(kAllowed) != std::string::npos; }));
  EXPECT_LT(watch.elapsed(), 3s);
  EXPECT_THAT(Check(first, 90), Not(HasSubstr(kAllowed)));
}

TEST_F(RedisTlsTest, TwoNodesShareLimitsInACluster) {
  RedisCluster cluster({.replicas = false, .password = kPassword, .certificates = &certificates_});
  ASSERT_TRUE(cluster.url().starts_with("rediss+cluster://"));
  const auto serve = [&](const std::string& data) {
    std::vector<std::string> words = Serve(cluster.url() + "&tag=user", data);
    words.insert(words.end(), {"--policies", dir_.Write("policies.yaml", R"(
policies:
  - name: p
    match: { user: "*" }
    quota: { fixed_window: { limit: 100, window: 100d } }
)")});
    return words;
  };
  WeirProcess one(serve("first"));
  WeirProcess other(serve("second"));
  HttpClient first(one.Port("http"));
  HttpClient second(other.Port("http"));
  const auto check = [](HttpClient& node, int user, int cost) {
    return node
        .Post("/v1/check", R"({"descriptors":[{"user":")" + std::to_string(user) +
                               R"("}],"cost":)" + std::to_string(cost) + "}")
        .body;
  };
  // Each user has a slot: together they are on all masters. 60 + 50 do not fit, 60 + 40 do.
  constexpr int kUsers = 12;
  for (int user = 0; user < kUsers; ++user) {
    EXPECT_THAT(check(first, user, 60), HasSubstr(kAllowed));
    EXPECT_THAT(check(second, user, 50), Not(HasSubstr(kAllowed)));
    EXPECT_THAT(check(second, user, 40), HasSubstr(kAllowed));
  }
  for (std::size_t i = 0; i < RedisCluster::kMasters; ++i) {
    EXPECT_NE(cluster.node(i).Command({"DBSIZE"}), "0") << "node " << i;
  }
  EXPECT_THAT(first.Get("/metrics").body, HasSubstr("weir_store_failures_total 0\n"));
}

TEST_F(RedisTlsTest, AWrongPasswordIsSaidAtOnceAndNotRepeated) {
  std::string url = redis_.url();
  url.replace(url.find(kPassword), std::string(kPassword).size(), "notthisone");
  WeirProcess weir(Serve(url, "wrong"));
  const Stopwatch watch;
  EXPECT_EQ(weir.process().Wait(60s), 1);
  // The timeout for a store that does not answer is 5 s.
  EXPECT_LT(watch.elapsed(), 4s);
  const std::string said = weir.process().error_output() + weir.process().output();
  EXPECT_THAT(said, HasSubstr(" authentication failed: "));
  EXPECT_THAT(said, HasSubstr("WRONGPASS"));
  EXPECT_THAT(said, Not(HasSubstr("notthisone")));
}

}  // namespace
}  // namespace weir::test
