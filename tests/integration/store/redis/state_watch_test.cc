// A Redis that loses its data is noticed, and one that does not is never reported.

#include "store/redis/state_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "support/redis_cluster.h"
#include "support/redis_server.h"
#include "support/wait.h"

namespace weir::store::redis {
namespace {

using test::WaitUntil;

/// One node's watch, polling very often.
struct Node {
  explicit Node(const std::string& url) {
    auto opened = StateWatch::Open(
        {.url = url, .timeout = std::chrono::seconds(5), .interval = std::chrono::milliseconds(5)},
        {[this] { ++lost; }, [this](const Error& error) { failed = error.message; }});
    watch = std::move(*opened);
  }

  std::atomic<int> lost{0};
  std::string failed;  // read after the watch has ended
  std::unique_ptr<StateWatch> watch;
};

/// Waits for at least `looks` more polls; returns the server's content.
void AwaitLooks(test::RedisServer& server, int looks) {
  const auto mark = [&] {
    const std::string text = server.Command({"GET", "weir:mark:0#"});
    return text.empty() || text == "\n" ? 0 : std::stoi(text);
  };
  const int from = mark();
  ASSERT_TRUE(WaitUntil([&] { return mark() >= from + looks; }));
}

TEST(StateWatch, IsSilentOnANewServerHoweverManyNodesUseIt) {
  test::RedisServer server;
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 4; ++i) nodes.push_back(std::make_unique<Node>(server.url()));
  AwaitLooks(server, 200);
  // One more that starts on a server with data.
  nodes.push_back(std::make_unique<Node>(server.url()));
  AwaitLooks(server, 50);
  for (const auto& node : nodes) {
    node->watch.reset();
    EXPECT_EQ(node->lost, 0);
    EXPECT_EQ(node->failed, "");
  }
}

TEST(StateWatch, EveryNodeNoticesThatTheServerWasEmptied) {
  test::RedisServer server;
  Node first(server.url());
  Node second(server.url());
  AwaitLooks(server, 20);
  server.Command({"FLUSHALL"});
  EXPECT_TRUE(WaitUntil([&] { return first.lost == 1 && second.lost == 1; }));
  AwaitLooks(server, 20);
  EXPECT_EQ(first.lost, 1);
  EXPECT_EQ(second.lost, 1);
}

TEST(StateWatch, ARestartWithoutPersistenceIsALossAndOneWithItIsNot) {
  test::RedisServer forgetful;
  test::RedisServer durable({.durable = true});
  Node loses(forgetful.url());
  Node keeps(durable.url());
  for (test::RedisServer* server : {&forgetful, &durable}) {
    AwaitLooks(*server, 5);
    server->Kill();
    server->Start();
    AwaitLooks(*server, 5);
  }
  EXPECT_TRUE(WaitUntil([&] { return loses.lost == 1; }));
  EXPECT_EQ(keeps.lost, 0);
}

TEST(StateWatch, EachMasterOfAClusterIsWatched) {
  test::RedisCluster cluster({.replicas = false});
  Node node(cluster.url());
  const auto has_mark = [&](std::size_t i) {
    return cluster.node(i).Command({"KEYS", "weir:mark:*"}).find("weir:mark:") != std::string::npos;
  };
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    ASSERT_TRUE(WaitUntil([&] { return has_mark(i); })) << i;
    EXPECT_EQ(node.lost, static_cast<int>(i));
    cluster.node(i).Command({"FLUSHALL"});
    EXPECT_TRUE(WaitUntil([&] { return node.lost == static_cast<int>(i) + 1; })) << i;
  }
  EXPECT_TRUE(WaitUntil([&] { return has_mark(0); }));
  EXPECT_EQ(node.lost, 3);
}

TEST(StateWatch, AServerThatForbidsItIsReportedOnce) {
  test::RedisServer server;
  server.Command({"ACL", "SETUSER", "weak", "on", ">secret", "~other:*", "+@all"});
  const std::string url = "redis://weak:secret@127.0.0.1:" + std::to_string(server.port());
  Node node(url);
  EXPECT_TRUE(WaitUntil([&] {
    return server.Command({"ACL", "LOG"}).find("weir:mark") != std::string::npos;
  }));
  node.watch.reset();
  EXPECT_NE(node.failed.find("NOPERM"), std::string::npos) << node.failed;
  EXPECT_EQ(node.lost, 0);
}

}  // namespace
}  // namespace weir::store::redis
