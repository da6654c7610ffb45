// Processes on a Redis Cluster: keys are spread over the masters as far as the policies allow it,
// and a request is still charged all or none.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "e2e/stores/nodes.h"
#include "support/http_client.h"
#include "support/redis_cluster.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

constexpr std::string_view kPolicies = R"(
domain: api
policies:
  - { name: per-user, match: { user: "*" }, on_store_error: deny,
      quota: { fixed_window: { limit: 5, window: 100d } } }
  - { name: per-route, match: { user: "*", route: "*" }, on_store_error: deny,
      quota: { fixed_window: { limit: 3, window: 100d } } }
)";

class ClusterSpreadTest : public ::testing::Test {
 protected:
  bool Allowed(std::size_t node, const std::string& descriptors) {
    HttpClient client(nodes_.ports()[node]);
    const std::string body =
        client.Post("/v1/check", R"({"domain":"api","descriptors":[)" + descriptors + "]}").body;
    EXPECT_EQ(body.find("\"degraded\":true"), std::string::npos) << body;
    return body.find("\"allowed\":true") != std::string::npos;
  }
  static std::string User(int user) { return R"({"user":")" + std::to_string(user) + "\"}"; }
  static std::string Route(int user) {
    return R"({"user":")" + std::to_string(user) + R"(","route":"/pay"})";
  }

  RedisCluster cluster_{{.replicas = false}};
  Nodes nodes_{2, cluster_.url(), std::string(kPolicies), {"--store-timeout", "5s"}};
};

TEST_F(ClusterSpreadTest, LimitsAreExactOnAllMasters) {
  constexpr int kUsers = 60;
  for (int user = 0; user < kUsers; ++user) {
    // Both policies apply to a route: together they are charged 3 times, then nothing is.
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(Allowed(static_cast<std::size_t>(i % 2), Route(user)), i < 3) << user;
    }
    EXPECT_TRUE(Allowed(0, User(user)));
    EXPECT_TRUE(Allowed(1, User(user)));
    EXPECT_FALSE(Allowed(0, User(user))) << user;
  }
  for (std::size_t i = 0; i < RedisCluster::kMasters; ++i) {
    const int keys = std::stoi(cluster_.node(i).Command({"DBSIZE"}));
    EXPECT_GE(keys, kUsers / 6) << "master " << i;
  }
}

TEST_F(ClusterSpreadTest, ARequestForManyUsersIsChargedAllOrNone) {
  std::string all;
  for (int user = 0; user < 12; ++user) all += (user > 0 ? "," : "") + User(user);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Allowed(static_cast<std::size_t>(i % 2), all));
  EXPECT_TRUE(Allowed(0, User(7)));
  EXPECT_FALSE(Allowed(0, all)) << "user 7 has had all";
  for (int user = 0; user < 12; ++user) {
    EXPECT_EQ(Allowed(1, User(user)), user != 7) << "what was refused was charged: " << user;
    EXPECT_FALSE(Allowed(1, User(user))) << user;
  }
}

// A request whose policies are in a cluster, in several of its slots, and in another store.
TEST(ClusterBesideAStore, WhatTheOtherStoreRefusesIsReturnedInEverySlot) {
  RedisCluster cluster({.replicas = false});
  TempDir dir;
  const std::string policies = dir.Write("policies.yaml", R"(
domain: api
policies:
  - { name: per-user, match: { user: "*" }, quota: { sliding_log: { limit: 5, window: 100d } } }
  - { name: once, match: { once: "*" }, store: here,
      quota: { fixed_window: { limit: 1, window: 100d } } }
)");
  const std::string config = dir.Write(
      "weir.yaml", "stores: { far: \"" + cluster.url() + "\", here: \"memory:\" }\nstore: far\n");
  WeirProcess weir({"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--config",
                    config, "--policies", policies, "--data", dir / "data", "--store-timeout",
                    "5s"});
  HttpClient client(weir.Port("http"));
  const auto allowed = [&client](const std::string& descriptors) {
    const std::string body =
        client.Post("/v1/check", R"({"domain":"api","descriptors":[)" + descriptors + "]}").body;
    EXPECT_EQ(body.find("\"degraded\":true"), std::string::npos) << body;
    return body.find("\"allowed\":true") != std::string::npos;
  };
  std::string all = R"({"once":"x"})";
  for (int user = 0; user < 6; ++user) all += R"(,{"user":")" + std::to_string(user) + "\"}";
  EXPECT_TRUE(allowed(all));
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(allowed(all));
  for (int user = 0; user < 6; ++user) {
    const std::string one = R"({"user":")" + std::to_string(user) + "\"}";
    for (int i = 0; i < 5; ++i) EXPECT_EQ(allowed(one), i < 4) << user << ", " << i;
  }
  EXPECT_NE(client.Get("/metrics").body.find("weir_store_not_undone_total 0"), std::string::npos);
}

}  // namespace
}  // namespace weir::test
