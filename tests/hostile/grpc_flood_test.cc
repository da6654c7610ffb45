// One gRPC client that sends as much as it can of what costs it least. The service disconnects it,
// and uses no more memory for it than docs/reference/bounds.md says.

#include <poll.h>
#include <sys/socket.h>

#include "e2e/service/fixture.h"
#include "hostile/h2_frames.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr char kCheck[] = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

class GrpcFlood : public ServiceTest {
 protected:
  void SetUp() override { Serve({"--grpc", "127.0.0.1:0", "--threads", "2"}); }

  /// Sends until the service closes, everything is sent, or nothing is accepted for `patience`.
  /// True if the service closed.
  bool Flood(TcpConnection& connection, std::string_view bytes,
             std::chrono::milliseconds patience = 60s) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      pollfd ready{connection.fd(), POLLOUT, 0};
      if (poll(&ready, 1, static_cast<int>(patience.count())) == 0) return false;
      const ssize_t size = send(connection.fd(), bytes.data() + sent, bytes.size() - sent,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
      if (size < 0 && errno != EAGAIN) return true;
      if (size > 0) sent += static_cast<std::size_t>(size);
      most_ = std::max(most_, Resident());
      if (reading_) Discard(connection);
    }
    return WaitUntil([&] { return Closed(connection); }, patience);
  }

  static void Discard(TcpConnection& connection) {
    std::array<char, 1 << 16> bytes;
    while (recv(connection.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }

  static bool Closed(TcpConnection& connection) {
    Discard(connection);
    char byte = 0;
    const ssize_t size = recv(connection.fd(), &byte, 1, MSG_DONTWAIT);
    return size == 0 || (size < 0 && errno != EAGAIN);
  }

  std::size_t most_ = 0;
  bool reading_ = false;
};

TEST_F(GrpcFlood, HeadersWithoutAcknowledgingTheSettings) {
  TcpConnection connection(weir_->Port("grpc"));
  const std::size_t before = Resident();
  std::string flood = h2::Hello();
  // Refused, since it has no authority: each is answered with a RST_STREAM that is never read.
  const std::string head =
      h2::Field(":method", "POST") + h2::Field(":scheme", "http") + h2::Field(":path", "/");
  const int small = 4096;
  setsockopt(connection.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  for (std::uint32_t id = 1; flood.size() < 24 * kMiB; id += 2) {
    flood += h2::Frame(h2::kHeaders, h2::kEndHeaders, id, head);
  }
  // Either it is closed, or nothing more is read from a client that reads no answers.
  (void)Flood(connection, flood, 3s);
  EXPECT_LT(most_ - before, 48 * kMiB);
  EXPECT_EQ(Client().Get("/healthz").status, 200);
}

TEST_F(GrpcFlood, HeadersOnStreamsThatAreOver) {
  TcpConnection connection(weir_->Port("grpc"));
  reading_ = true;
  std::string flood = h2::Hello() + h2::Frame(h2::kSettings, h2::kAck, 0);
  const std::string head = h2::CallHead(kCheck);
  for (std::uint32_t id = 1; id < 200; id += 2) {
    flood += h2::Frame(h2::kHeaders, h2::kEndHeaders | h2::kEndStream, id, head);
  }
  while (flood.size() < 16 * kMiB) {
    flood += h2::Frame(h2::kHeaders, h2::kEndHeaders | h2::kEndStream, 1, head);
  }
  EXPECT_TRUE(Flood(connection, flood));
}

TEST_F(GrpcFlood, MessagesWithoutAnEnd) {
  TcpConnection connection(weir_->Port("grpc"));
  reading_ = true;
  const std::size_t before = Resident();
  std::string flood = h2::Hello() + h2::Frame(h2::kSettings, h2::kAck, 0);
  const std::string head = h2::CallHead(kCheck);
  const std::string message = std::string("\0\0\0\x3f\xf0", 5) + std::string(16368, 'm');
  for (std::uint32_t id = 1; flood.size() < 160 * kMiB; id += 2) {
    flood += h2::Frame(h2::kHeaders, h2::kEndHeaders, id, head);
    flood += h2::Frame(h2::kData, h2::kNone, id, message);
  }
  (void)Flood(connection, flood, 3s);
  EXPECT_LT(most_ - before, 48 * kMiB);
  EXPECT_EQ(Client().Get("/healthz").status, 200);
}

TEST_F(GrpcFlood, AHeadThatNeverEnds) {
  TcpConnection connection(weir_->Port("grpc"));
  reading_ = true;
  const std::size_t before = Resident();
  std::string flood = h2::Hello() + h2::Frame(h2::kSettings, h2::kAck, 0) +
                      h2::Frame(h2::kHeaders, h2::kNone, 1, h2::CallHead(kCheck));
  const std::string field = h2::Field("x-padding", std::string(100, 'p'));
  std::string fields;
  for (int i = 0; i < 100; ++i) fields += field;
  while (flood.size() < 32 * kMiB) flood += h2::Frame(h2::kContinuation, h2::kNone, 1, fields);
  EXPECT_TRUE(Flood(connection, flood));
  EXPECT_LT(most_ - before, 16 * kMiB);
}

TEST_F(GrpcFlood, EmptyContinuations) {
  TcpConnection connection(weir_->Port("grpc"));
  reading_ = true;
  std::string flood = h2::Hello() + h2::Frame(h2::kSettings, h2::kAck, 0) +
                      h2::Frame(h2::kHeaders, h2::kNone, 1, h2::CallHead(kCheck));
  while (flood.size() < 16 * kMiB) flood += h2::Frame(h2::kContinuation, h2::kNone, 1);
  EXPECT_TRUE(Flood(connection, flood));
  EXPECT_EQ(Client().Get("/healthz").status, 200);
}

TEST_F(GrpcFlood, CallsThatAreResetAtOnce) {
  TcpConnection connection(weir_->Port("grpc"));
  reading_ = true;
  const std::size_t before = Resident();
  std::string flood = h2::Hello() + h2::Frame(h2::kSettings, h2::kAck, 0);
  const std::string head = h2::CallHead(kCheck);
  for (std::uint32_t id = 1; flood.size() < 48 * kMiB; id += 2) {
    flood += h2::Frame(h2::kHeaders, h2::kEndHeaders, id, head);
    flood += h2::Frame(h2::kRstStream, h2::kNone, id, std::string_view("\0\0\0\x08", 4));
  }
  EXPECT_TRUE(Flood(connection, flood));
  EXPECT_LT(most_ - before, 48 * kMiB);
}

// 250,000 checks of two bytes each, which take fifty times as much memory.
TEST_F(GrpcFlood, RefusedMessagesOfManyParts) {
  std::string parts;
  for (int i = 0; i < 250'000; ++i) parts.append("\x12\0", 2);
  const std::string message = std::string("\0\0\x07\xa1\x20", 5) + parts;
  const std::size_t before = Resident();
  for (int connections = 0; connections < 4; ++connections) {
    TcpConnection connection(weir_->Port("grpc"));
    reading_ = true;
    std::string flood = h2::Hello() + h2::Frame(h2::kSettings, h2::kAck, 0);
    std::uint32_t id = 1;
    for (const char* method : {"CheckBatch", "CheckStream", "Check"}) {
      flood += h2::Frame(h2::kHeaders, h2::kEndHeaders, id,
                         h2::CallHead(std::string("/weir.v1.Limiter/") + method));
      // The window for it is extended as it is read.
      for (std::size_t at = 0; at < message.size(); at += 16'000) {
        const bool last = at + 16'000 >= message.size();
        flood += h2::Frame(h2::kData, last ? h2::kEndStream : h2::kNone, id,
                           std::string_view(message).substr(at, 16'000));
      }
      id += 2;
    }
    connection.Send(flood + h2::Frame(h2::kPing, h2::kNone, 0, "all read"));
    (void)connection.ReadThrough("all read");
  }
  EXPECT_LT(Resident(), before + 24 * kMiB);
}

// protobuf would write a line for each, on the reactor that parses it, which would then block until
// the program's standard error is read.
TEST_F(GrpcFlood, TextThatIsNotUtf8IsNotLogged) {
  TcpConnection connection(weir_->Port("grpc"));
  std::string flood = h2::Hello() + h2::Frame(h2::kSettings, h2::kAck, 0);
  const std::string domain("\0\0\0\0\x03\x0a\x01\xff", 8);
  for (std::uint32_t id = 1; id < 200; id += 2) {
    flood += h2::Frame(h2::kHeaders, h2::kEndHeaders, id, h2::CallHead(kCheck));
    flood += h2::Frame(h2::kData, h2::kEndStream, id, domain);
  }
  connection.Send(flood + h2::Frame(h2::kPing, h2::kNone, 0, "all read"));
  (void)connection.ReadThrough("all read");
  weir_->process().Terminate();
  EXPECT_EQ(weir_->process().error_output().find("UTF-8"), std::string::npos);
}

// Messages without their last bytes, on many connections.
TEST_F(GrpcFlood, UnfinishedMessagesOfManyConnections) {
  const std::size_t before = Resident();
  reading_ = true;
  const std::string head = h2::CallHead("/weir.v1.Limiter/CheckStream");
  std::string flood = h2::Hello() + h2::Frame(h2::kSettings, h2::kAck, 0);
  const std::string piece(16'000, 'm');
  for (std::uint32_t id = 1; flood.size() < 14 * kMiB; id += 2) {
    flood += h2::Frame(h2::kHeaders, h2::kEndHeaders, id, head);
    flood += h2::Frame(h2::kData, h2::kNone, id, std::string("\0\0\x07\xa1\x20", 5));
    for (int i = 0; i < 15; ++i) flood += h2::Frame(h2::kData, h2::kNone, id, piece);
  }
  std::vector<std::unique_ptr<TcpConnection>> connections;
  for (int i = 0; i < 30; ++i) {
    TcpConnection& connection =
        *connections.emplace_back(std::make_unique<TcpConnection>(weir_->Port("grpc")));
    std::size_t sent = 0;
    while (sent < flood.size()) {
      pollfd ready{connection.fd(), POLLOUT, 0};
      if (poll(&ready, 1, 2000) == 0) break;
      const ssize_t size = send(connection.fd(), flood.data() + sent, flood.size() - sent,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
      if (size < 0 && errno != EAGAIN) break;
      if (size > 0) sent += static_cast<std::size_t>(size);
      Discard(connection);
    }
    most_ = std::max(most_, Resident());
  }
  // 420 MiB were sent. Each of two reactors may hold 64 MiB.
  EXPECT_LT(most_ - before, 200 * kMiB);
  EXPECT_EQ(Client().Get("/healthz").status, 200);
}

}  // namespace
}  // namespace weir::test
