#include "support/redis_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fault/stores/store_fault.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;
using Felt = StoreFault::Felt;

class RedisClusterFaultTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = std::make_unique<RedisCluster>();
    fault_ = std::make_unique<StoreFault>(cluster_->url());
  }
  static void TearDownTestSuite() {
    fault_.reset();
    cluster_.reset();
  }

  /// The slot of the only key. Its window may just have ended, so that no node has the key for a
  /// moment; but its slot stays the same.
  static std::uint16_t HotSlot() {
    static const std::uint16_t slot = cluster_->SlotOfKeyLike("*hot*");
    return slot;
  }
  static std::size_t HotMaster() { return cluster_->MasterOf(HotSlot()); }

  static inline std::unique_ptr<RedisCluster> cluster_;
  static inline std::unique_ptr<StoreFault> fault_;
};

TEST_F(RedisClusterFaultTest, AMasterHandsOverToItsReplica) {
  fault_->Expect(Felt::kPerhaps, [] { cluster_->Failover(HotSlot()); });
}

TEST_F(RedisClusterFaultTest, AMasterStandsStillForTenSeconds) {
  fault_->Expect(Felt::kYes, [] {
    RedisServer& master = cluster_->node(HotMaster());
    master.Pause();
    std::this_thread::sleep_for(10s);
    master.Resume();
    cluster_->AwaitOk();
  });
}

TEST_F(RedisClusterFaultTest, ScriptsAndKeysFlushed) {
  fault_->Expect(Felt::kNo, [] {
    RedisServer& master = cluster_->node(HotMaster());
    master.Command({"SCRIPT", "FLUSH"});
    std::this_thread::sleep_for(100ms);
    master.Command({"FLUSHALL"});
  });
}

TEST_F(RedisClusterFaultTest, AMasterIsKilledAndItsReplicaTakesOver) {
  std::size_t killed = 0;
  fault_->Expect(Felt::kYes, [&killed] {
    killed = HotMaster();
    cluster_->node(killed).Kill();
    ASSERT_TRUE(WaitUntil([killed] {
      try {
        return HotMaster() != killed;
      } catch (const std::exception&) {
        return false;  // it asked a node that is down
      }
    }));
  });
  cluster_->node(killed).Start();
}

// Users are spread over the masters: by default as the policies allow it, or each with a separate
// slot (?tag=user).
class RedisClusterPartsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RedisClusterPartsTest, AMasterWithoutReplicaTakesOnlyItsOwnUsersAlong) {
  constexpr int kUsers = 30;
  constexpr int kLimit = 20;
  RedisCluster cluster({.replicas = false});
  Nodes nodes(1, cluster.url() + GetParam(), R"(
policies:
  - name: p
    match: { user: "*" }
    quota: { fixed_window: { limit: 20, window: 100d } }
    on_store_error: allow
)",
              {"--store-timeout", "1s", "--threads", "2"});
  HttpClient client(nodes.ports()[0]);
  const auto check = [&client](int user) {
    const std::string body =
        client.Post("/v1/check", R"({"descriptors":[{"user":")" + std::to_string(user) + "\"}]}")
            .body;
    return std::pair(body.find("\"allowed\":true") != std::string::npos,
                     body.find("\"degraded\":true") != std::string::npos);
  };
  std::vector<int> allowed(kUsers);
  for (int user = 0; user < kUsers; ++user)
    allowed[static_cast<std::size_t>(user)] += check(user).first;
  std::vector<bool> dead(kUsers);
  const std::string lost = cluster.node(1).Command({"KEYS", "*"});
  for (int user = 0; user < kUsers; ++user) {
    dead[static_cast<std::size_t>(user)] =
        lost.find("|user:" + std::to_string(user) + "f") != std::string::npos;
  }
  // Those that are about to fail come first in every round: many failures in a row.
  std::vector<int> order(kUsers);
  std::iota(order.begin(), order.end(), 0);
  const auto lives = std::stable_partition(order.begin(), order.end(), [&dead](int user) {
    return dead[static_cast<std::size_t>(user)];
  });
  ASSERT_GE(lives - order.begin(), 5);
  ASSERT_NE(lives, order.end());
  cluster.node(1).Kill();
  int degraded_dead = 0;
  for (int round = 0; round < 2 * kLimit; ++round) {
    for (const int user : order) {
      const auto [passed, degraded] = check(user);
      allowed[static_cast<std::size_t>(user)] += passed;
      if (dead[static_cast<std::size_t>(user)]) {
        degraded_dead += degraded;
      } else {
        EXPECT_FALSE(degraded) << "user " << user << ", round " << round;
      }
    }
  }
  EXPECT_GT(degraded_dead, 0);
  for (int user = 0; user < kUsers; ++user) {
    if (!dead[static_cast<std::size_t>(user)]) {
      EXPECT_EQ(allowed[static_cast<std::size_t>(user)], kLimit) << "user " << user;
    }
  }
  // Restarted with its memory lost: its users are decided by it again.
  cluster.node(1).Start();
  EXPECT_TRUE(WaitUntil([&] {
    for (int user = 0; user < kUsers; ++user) {
      if (check(user).second) return false;
    }
    return true;
  }));
}

INSTANTIATE_TEST_SUITE_P(Ways, RedisClusterPartsTest, ::testing::Values("", "?tag=user"),
                         [](const auto& way) { return way.param.empty() ? "Spread" : "Tagged"; });

}  // namespace
}  // namespace weir::test
