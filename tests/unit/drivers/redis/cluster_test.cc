// What a server that impersonates a cluster can do to us. Real clusters are in
// tests/integration/store/redis.

#include "drivers/redis/cluster.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <string>

#include "support/tcp_server.h"

namespace weir::redis {
namespace {

using namespace std::chrono_literals;

/// Answers CLUSTER SLOTS with `slots`, and each call with a redirection to another node.
class FalseNode {
 public:
  explicit FalseNode(std::function<std::string(std::uint16_t port)> slots)
      : slots_(std::move(slots)), server_([this](auto& connection) { Serve(connection); }) {}

  Endpoint endpoint() const { return {"127.0.0.1", server_.port()}; }

 private:
  void Serve(test::TcpConnection& connection) {
    while (true) {
      // Only the name of the next command matters.
      const std::string read = connection.ReadThrough("\r\n");
      if (read.empty()) return;
      if (read == "CLUSTER\r\n") connection.Send(slots_(server_.port()));
      if (read != "EVALSHA\r\n") continue;
      // Addresses of this machine on which nothing listens.
      const int next = next_++;
      connection.Send("-MOVED 1 127.1." + std::to_string(next / 250) + "." +
                      std::to_string(1 + next % 250) + ":1\r\n");
    }
  }

  const std::function<std::string(std::uint16_t port)> slots_;
  std::atomic<int> next_{0};
  test::TcpServer server_;
};

std::string Range(std::uint16_t port) {
  return "*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + std::to_string(port) + "\r\n";
}

class ClusterTest : public ::testing::Test {
 protected:
  /// Makes `calls` concurrent calls to the cluster, and waits for the answers.
  void Call(Cluster& cluster, int calls) {
    int left = calls;
    for (int i = 0; i < calls; ++i) {
      cluster.Call(1, script_, {"1", "key"}, [&](const Answer& answer) {
        EXPECT_FALSE(answer.status.ok());
        --left;
      });
    }
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (left > 0 && std::chrono::steady_clock::now() < deadline) {
      io_.restart();
      io_.run_for(10ms);
    }
    EXPECT_EQ(left, 0);
  }

  ConnectionOptions Options() {
    ConnectionOptions options;
    options.connect_timeout = 1s;
    options.command_timeout = 1s;
    return options;
  }

  boost::asio::io_context io_;
  const Script script_{"return 1"};
};

// A reply with many ranges, each of all slots, would take very long to process.
TEST_F(ClusterTest, SlotsThatAreNamedTwiceAreReadOnce) {
  FalseNode node([](std::uint16_t port) { return "*2\r\n" + Range(port) + Range(1); });
  const auto masters = std::make_shared<Masters>(16);
  ASSERT_EQ(masters->NumberOf(node.endpoint()), 1U);
  Cluster cluster(io_, Options(), {node.endpoint()}, 1, masters);
  Call(cluster, 1);
  EXPECT_EQ(cluster.MasterOf(5), 1U);
}

TEST_F(ClusterTest, RedirectionsOpenNoConnectionsWithoutEnd) {
  FalseNode node([](std::uint16_t) { return std::string("*0\r\n"); });
  Cluster cluster(io_, Options(), {node.endpoint()}, 1);
  Call(cluster, 1'200);
  EXPECT_LE(cluster.nodes(), 1'024U);
}

}  // namespace
}  // namespace weir::redis
