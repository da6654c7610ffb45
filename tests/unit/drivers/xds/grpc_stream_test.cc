// What a malicious server can do to a stream. Real control planes are in
// tests/integration/drivers/xds.

#include "drivers/xds/grpc_stream.h"

#include <gtest/gtest.h>

#include <string>

#include "hostile/h2_frames.h"
#include "support/stopwatch.h"
#include "support/tcp_server.h"

namespace weir::xds {
namespace {

using namespace std::chrono_literals;
namespace h2 = test::h2;

/// How a server begins: its settings, and `:status: 200`.
std::string Begin() {
  return h2::Frame(h2::kSettings, h2::kNone, 0) + h2::Frame(h2::kSettings, h2::kAck, 0) +
         h2::Frame(h2::kHeaders, h2::kEndHeaders, 1, "\x88");
}

Server At(const test::TcpServer& server) {
  return {.url = "grpc://127.0.0.1:" + std::to_string(server.port())};
}

TEST(GrpcStream, AServerThatDoesNotReadEndsTheStream) {
  test::TcpServer server([](test::TcpConnection& connection) {
    connection.Send(Begin());
    // Reads the client's first bytes, and grants no window for more.
    (void)connection.ReadAll();
  });
  GrpcStream stream(At(server), "/a/B");
  Status status;
  int sent = 0;
  for (; sent < 200 && status.ok(); ++sent) {
    stream.Send(std::string(100'000, 'm'));
    status = stream.Wait(10ms);
  }
  EXPECT_LE(sent, 20);
  EXPECT_FALSE(status.ok());
}

TEST(GrpcStream, AMillionMessagesAtOnceAreReadInATimeThatGrowsWithTheirNumber) {
  constexpr int kFrames = 320;
  constexpr int kMessages = 3'200;  // of five bytes each
  test::TcpServer server([](test::TcpConnection& connection) {
    std::string all = Begin();
    for (int i = 0; i < kFrames; ++i) {
      all += h2::Frame(h2::kData, h2::kNone, 1, std::string(std::size_t{5} * kMessages, '\0'));
    }
    connection.Send(all);
    (void)connection.ReadAll();
  });
  GrpcStream stream(At(server), "/a/B");
  stream.Send("hello");
  const test::Stopwatch watch;
  int read = 0;
  while (read < kFrames * kMessages) {
    ASSERT_TRUE(stream.Wait(10s).ok());
    while (stream.Next()) ++read;
  }
  EXPECT_EQ(read, kFrames * kMessages);
  EXPECT_LT(watch.elapsed(), 5s);
}

}  // namespace
}  // namespace weir::xds
