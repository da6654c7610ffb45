#include <gtest/gtest.h>

#include "fault/stores/store_fault.h"
#include "support/redis_cluster.h"

namespace weir::test {
namespace {

TEST(RedisClusterCutTest, ConnectionsCutHalfWayThroughAReply) {
  RedisCluster cluster({.replicas = false, .proxied = true});
  StoreFault fault(cluster.url());
  fault.Expect(StoreFault::Felt::kPerhaps, [&cluster] {
    const std::size_t hot = cluster.MasterOf(cluster.SlotOfKeyLike("*hot*"));
    EXPECT_TRUE(cluster.proxy(hot).CutReplies());
  });
}

}  // namespace
}  // namespace weir::test
