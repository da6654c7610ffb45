#include "support/redis_cluster.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

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

  /// The master that has the hot key: the one that holds any key, since there is only one.
  static std::size_t HotMaster() {
    for (std::size_t i = 0; i < cluster_->size(); ++i) {
      const bool master = cluster_->node(i).Command({"ROLE"}).starts_with("master");
      if (master && !cluster_->node(i).Command({"KEYS", "*hot*"}).empty() &&
          cluster_->node(i).Command({"KEYS", "*hot*"}) != "\n") {
        return i;
      }
    }
    throw std::runtime_error("no node has the key");
  }

  static inline std::unique_ptr<RedisCluster> cluster_;
  static inline std::unique_ptr<StoreFault> fault_;
};

TEST_F(RedisClusterFaultTest, AMasterHandsOverToItsReplica) {
  fault_->Expect(Felt::kPerhaps, [] {
    const std::string key = cluster_->node(HotMaster()).Command({"KEYS", "*hot*"});
    const std::string slot =
        cluster_->node(0).Command({"CLUSTER", "KEYSLOT", key.substr(0, key.find('\n'))});
    cluster_->Failover(static_cast<std::uint16_t>(std::stoi(slot)));
  });
}

TEST_F(RedisClusterFaultTest, AMasterIsKilledAndItsReplicaTakesOver) {
  std::size_t killed = 0;
  fault_->Expect(Felt::kYes, [&killed] {
    killed = HotMaster();
    const std::string key = cluster_->node(killed).Command({"KEYS", "*hot*"});
    const auto slot = static_cast<std::uint16_t>(std::stoi(
        cluster_->node(killed).Command({"CLUSTER", "KEYSLOT", key.substr(0, key.find('\n'))})));
    cluster_->node(killed).Kill();
    ASSERT_TRUE(WaitUntil([slot, killed] {
      try {
        return cluster_->MasterOf(slot) != killed;
      } catch (const std::exception&) {
        return false;  // it asks one that is not there
      }
    }));
  });
  cluster_->node(killed).Start();
}

}  // namespace
}  // namespace weir::test
