// The built program from start to end: slow peers, tunnels, a drain under load.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "support/http_client.h"
#include "support/nginx_server.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Args(std::uint16_t upstream, const TempDir& dir,
                              std::vector<std::string> more = {}) {
  std::vector<std::string> args = {
      "proxy",       "--upstream", "http://127.0.0.1:" + std::to_string(upstream),
      "--data",      dir.path(),   "--listen",
      "127.0.0.1:0", "--per-ip",   "1000000/60m"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(WeirProxyLifecycle, DropsNothingWhenItIsToldToEnd) {
  NginxServer nginx("location / { return 200 'hello'; }");
  TempDir dir;
  WeirProcess weir(Args(nginx.port(), dir));
  const std::uint16_t port = weir.Port("proxy");
  std::atomic<int> answered = 0;
  std::atomic<int> dropped = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      HttpClient client(port);
      while (true) {
        try {
          client.connection();
        } catch (const std::runtime_error&) {
          return;  // it no longer listens: nothing was sent, nothing is lost
        }
        try {
          if (client.Get("/").body == "hello") ++answered;
        } catch (const std::runtime_error&) {
          ++dropped;
          return;
        }
      }
    });
  }
  EXPECT_TRUE(WaitUntil([&] { return answered > 2'000; }));
  weir.process().Signal(SIGTERM);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(dropped, 0);
  EXPECT_EQ(weir.process().Wait(), 0);
  EXPECT_EQ(nginx.AccessLogLines(), static_cast<std::size_t>(answered));
}

TEST(WeirProxyLifecycle, FinishesADownloadAfterItIsToldToEnd) {
  constexpr std::size_t kSize = 50'000'000;
  TcpServer upstream([](TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n");
    connection.Send(std::string(kSize, 'x'));
  });
  TempDir dir;
  WeirProcess weir(Args(upstream.port(), dir));
  TcpConnection client(weir.Port("proxy"));
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.ReadThrough("\r\n\r\n");
  weir.process().Signal(SIGTERM);
  std::size_t got = 0;
  while (got < kSize) got += client.Read(1'000'000).size();
  EXPECT_EQ(got, kSize);
  EXPECT_EQ(weir.process().Wait(), 0);
}

TEST(WeirProxyLifecycle, TunnelsAWebsocket) {
  // Handshake and frames as in RFC 6455, section 1.2 and 5.7: an unmasked and a masked "Hello".
  const std::string hello("\x81\x05Hello", 7);
  const std::string masked("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11);
  TcpServer upstream([&](TcpConnection& connection) {
    const std::string head = connection.ReadThrough("\r\n\r\n");
    if (head.find("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n") == std::string::npos) return;
    connection.Send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
    while (connection.Read(masked.size()) == masked) connection.Send(hello);
  });
  TempDir dir;
  WeirProcess weir(Args(upstream.port(), dir));
  TcpConnection client(weir.Port("proxy"));
  client.Send(
      "GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n");
  EXPECT_THAT(client.ReadThrough("\r\n\r\n"),
              HasSubstr("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  for (int i = 0; i < 1'000; ++i) {
    client.Send(masked);
    ASSERT_EQ(client.Read(hello.size()), hello);
  }
}

TEST(WeirProxyLifecycle, TunnelsEndSoonAfterItIsToldToEndHoweverBusyTheyAre) {
  TcpServer upstream([](TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    while (true) connection.Send(connection.Read(1));
  });
  TempDir dir;
  const std::string patient = dir.Write("weir.yaml", "limits: { drain_timeout: 1m }\n");
  WeirProcess weir(Args(upstream.port(), dir, {"--config", patient}));
  TcpConnection client(weir.Port("proxy"));
  client.Send("GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
  client.ReadThrough("\r\n\r\n");
  weir.process().Signal(SIGTERM);
  const auto told = std::chrono::steady_clock::now();
  const auto took = [told] { return std::chrono::steady_clock::now() - told; };
  try {
    while (took() < std::chrono::seconds(40)) {
      client.Send("x");
      client.Read(1);
    }
  } catch (const std::runtime_error&) {  // the tunnel has ended
  }
  EXPECT_LT(took(), std::chrono::seconds(30));
  EXPECT_EQ(weir.process().Wait(), 0);
}

TEST(WeirProxyLifecycle, AnswersForASlowUpstream) {
  TcpServer upstream([](TcpConnection& connection) { connection.ReadAll(); });
  TempDir dir;
  WeirProcess weir(Args(upstream.port(), dir, {"--stall-timeout", "300ms"}));
  HttpClient client(weir.Port("proxy"));
  const HttpResponse response = client.Get("/");
  EXPECT_EQ(response.status, 504);
  EXPECT_THAT(response.body, HasSubstr("{\"status\":504,\"error\":\"Gateway Timeout\""));
}

TEST(WeirProxyLifecycle, IsRidOfSlowClients) {
  TcpServer upstream([](TcpConnection& connection) { connection.ReadAll(); });
  TempDir dir;
  WeirProcess weir(Args(upstream.port(), dir, {"--header-timeout", "300ms"}));
  const std::uint16_t port = weir.Port("proxy");
  std::vector<TcpConnection> clients;
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back(port);
    clients.back().Send("GET / HTTP/1.1\r\nX");
  }
  for (TcpConnection& client : clients) {
    EXPECT_THAT(client.ReadAll(), HasSubstr("408 Request Timeout"));
  }
}

TEST(WeirProxyLifecycle, SurvivesClientsThatLeaveInTheMidstOfAnUpload) {
  std::atomic<int> cut_off = 0;
  TcpServer upstream([&](TcpConnection& connection) {
    const std::string head = connection.ReadThrough("\r\n\r\n");
    if (head.starts_with("GET")) {
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    } else if (connection.ReadAll().size() < 1'000'000) {
      ++cut_off;
    }
  });
  TempDir dir;
  WeirProcess weir(Args(upstream.port(), dir));
  const std::uint16_t port = weir.Port("proxy");
  for (int i = 0; i < 20; ++i) {
    TcpConnection client(port);
    client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
    client.Send(std::string(100'000, 'x'));
  }
  EXPECT_TRUE(WaitUntil([&] { return cut_off == 20; }));
  EXPECT_EQ(HttpClient(port).Get("/").body, "ok");
}

}  // namespace
}  // namespace weir::test
