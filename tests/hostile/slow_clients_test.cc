// Clients that connect and then take their time: every endpoint closes them, and none of them locks
// the others out.

#include <sys/socket.h>

#include <memory>

#include "e2e/service/fixture.h"
#include "hostile/h2_frames.h"
#include "support/stopwatch.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;

class SlowClients : public ServiceTest {
 protected:
  void ServeConfig(const std::string& yaml) {
    Serve({"--config", dir_.Write("weir.yaml", yaml).string(), "--grpc", "127.0.0.1:0", "--resp",
           "127.0.0.1:0"});
  }

  void Connect(std::uint16_t port, int count, std::string_view say = {}) {
    for (int i = 0; i < count; ++i) {
      clients_.emplace_back(port);
      if (!say.empty()) clients_.back().Send(say);
    }
  }

  static bool Closed(TcpConnection& connection) {
    std::array<char, 4096> bytes;
    ssize_t size = 0;
    do {
      size = recv(connection.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    } while (size > 0);
    return size == 0 || errno != EAGAIN;
  }

  bool AllClosed() {
    return std::all_of(clients_.begin(), clients_.end(),
                       [](auto& client) { return Closed(client); });
  }

  std::vector<TcpConnection> clients_;
};

TEST_F(SlowClients, ThoseThatDoNotIntroduceThemselvesAreClosedAtEveryDoor) {
  ServeConfig(
      "limits: {handshake_timeout: 1s, request_timeout: 1s, idle_timeout: 1s}\n"
      "resp: {keys: [a-key-for-clients]}\n");
  const std::uint16_t grpc = weir_->Port("grpc");
  const std::uint16_t resp = weir_->Port("resp");
  Connect(grpc, 20);  // sends nothing
  Connect(grpc, 20, h2::kPreface.substr(0, 10));
  Connect(grpc, 20, h2::kPreface);            // and never its settings
  Connect(resp, 20);                          // never logs in
  Connect(resp, 20, "*2\r\n$4\r\nAUTH\r\n");  // half a login
  Connect(resp, 20, "PING\r\nPING\r\n");      // sends commands, but never logs in
  Connect(port_, 20);
  Connect(port_, 20, "GET / HTTP/1.1\r\nHo");
  EXPECT_TRUE(WaitUntil([this] { return AllClosed(); }));
}

TEST_F(SlowClients, RequestsThatStopHalfwayAreClosedAtEveryDoor) {
  ServeConfig("limits: {request_timeout: 1s}\n");
  Connect(weir_->Port("resp"), 20, "PING\r\n*2\r\n$4\r\nECHO\r\n$100\r\nabc");
  // A head that never ends.
  Connect(weir_->Port("grpc"), 20, h2::Hello() + h2::Frame(h2::kHeaders, h2::kNone, 1));
  EXPECT_TRUE(WaitUntil([this] { return AllClosed(); }));
}

TEST_F(SlowClients, ThoseThatGiveNoWindowForTheirAnswersAreClosed) {
  ServeConfig("limits: {write_timeout: 1s}\n");
  // SETTINGS_INITIAL_WINDOW_SIZE 0, then a whole call: bytes are read, but its answer must not be
  // sent.
  const std::string settings("\0\x04\0\0\0\0", 6);
  const std::string call =
      std::string(h2::kPreface) + h2::Frame(h2::kSettings, h2::kNone, 0, settings) +
      h2::Frame(h2::kHeaders, h2::kEndHeaders, 1, h2::CallHead("/grpc.health.v1.Health/Check")) +
      h2::Frame(h2::kData, h2::kEndStream, 1, std::string_view("\0\0\0\0\0", 5));
  Connect(weir_->Port("grpc"), 20, call);
  EXPECT_TRUE(WaitUntil([this] { return AllClosed(); }));
}

/// Reads frames up to one of this type and with all these flags.
void ReadThrough(TcpConnection& client, h2::Type type, unsigned flags) {
  while (true) {
    const std::string head = client.Read(9);
    std::size_t size = 0;
    for (const char byte : head.substr(0, 3)) size = size << 8U | static_cast<unsigned char>(byte);
    client.Read(size);
    if (head[3] == static_cast<char>(type) && (static_cast<unsigned>(head[4]) & flags) == flags) {
      return;
    }
  }
}

TEST_F(SlowClients, ThoseThatAreResetAsTheySpeakAreGone) {
  ServeConfig("threads: 1\n");
  const std::string ping(8, 'x');
  for (int i = 0; i < 50; ++i) {
    TcpConnection client(weir_->Port("grpc"));
    // A call without a time limit. Once the ping is answered, nothing is left to be sent.
    client.Send(
        h2::Hello() +
        h2::Frame(h2::kHeaders, h2::kEndHeaders, 1, h2::CallHead("/grpc.health.v1.Health/Watch")) +
        h2::Frame(h2::kData, h2::kEndStream, 1, std::string_view("\0\0\0\0\0", 5)));
    ReadThrough(client, h2::kData, h2::kNone);
    client.Send(h2::Frame(h2::kSettings, h2::kAck, 0) + h2::Frame(h2::kPing, h2::kNone, 0, ping));
    ReadThrough(client, h2::kPing, h2::kAck);
    const linger at_once{1, 0};
    setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    client.Send(h2::Frame(h2::kPing, h2::kAck, 0, ping));  // gets no answer
  }
  // Only the client used here remains.
  const Stopwatch watch;
  EXPECT_TRUE(WaitUntil([this] {
    return Client().Get("/metrics").body.find("\nweir_connections 1\n") != std::string::npos;
  }));
  EXPECT_LT(watch.elapsed(), 10s);
}

TEST_F(SlowClients, OneDoorsCrowdDoesNotShutOutTheOthers) {
  ServeConfig("threads: 1\nlimits: {max_connections: 100}\n");
  Connect(weir_->Port("resp"), 150);
  EXPECT_EQ(Check(R"({"key":"a"})").status, 200);
  EXPECT_EQ(Client().Get("/healthz").status, 200);
}

TEST_F(SlowClients, HealthAndAdminAreAnsweredHoweverManyConnectionsThereAre) {
  ServeConfig("threads: 1\nlimits: {max_connections: 50}\n");
  Connect(port_, 100);
  ASSERT_TRUE(WaitUntil([this] { return Client().Get("/healthz").status == 200; }));
  EXPECT_EQ(Client().Get("/readyz").status, 200);
  EXPECT_EQ(Client().Get("/metrics").status, 200);
  EXPECT_NE(Client().Get("/admin/status").status, 503);
  const HttpResponse refused = Check(R"({"key":"a"})");
  EXPECT_EQ(refused.status, 503) << refused.body;
}

}  // namespace
}  // namespace weir::test
