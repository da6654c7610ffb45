// A client gets its complete response, or detects that it did not. A response that ends with its
// connection has no other end marker: if the upstream fails in the middle, the client must not
// mistake the part for the whole.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kUntilClose = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhalf";

enum class End { kWhole, kReset, kSilent };

/// 0 if the client saw the end of the stream, otherwise the error it got instead.
int ErrorAtTheEnd(End end) {
  std::promise<void> half_is_there;
  std::promise<void> over;
  TcpServer upstream([&](TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send(kUntilClose);
    // A client that did not get this far has failed, and waits for this thread.
    half_is_there.get_future().wait_for(60s);
    if (end == End::kSilent) over.get_future().wait_for(60s);
    if (end != End::kReset) return;
    const linger at_once{1, 0};
    setsockopt(connection.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  });
  TempDir dir;
  WeirProcess weir({"proxy", "--upstream", "http://127.0.0.1:" + std::to_string(upstream.port()),
                    "--data", dir.path(), "--listen", "127.0.0.1:0", "--stall-timeout",
                    end == End::kSilent ? "2s" : "60s"});
  TcpConnection client(weir.Port("proxy"));
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.ReadThrough("\r\n\r\nhalf");
  half_is_there.set_value();
  char byte = 0;
  const ssize_t got = recv(client.fd(), &byte, 1, 0);
  const int error = got < 0 ? errno : 0;
  over.set_value();
  return error;
}

TEST(WeirProxyCutOff, AResponseThatEndsWithTheConnectionIsWhole) {
  EXPECT_EQ(ErrorAtTheEnd(End::kWhole), 0);
}

TEST(WeirProxyCutOff, AnUpstreamThatBreaksOffIsNotTheEnd) {
  EXPECT_EQ(ErrorAtTheEnd(End::kReset), ECONNRESET);
}

TEST(WeirProxyCutOff, AnUpstreamThatFallsSilentIsNotTheEnd) {
  EXPECT_EQ(ErrorAtTheEnd(End::kSilent), ECONNRESET);
}

// Closing a socket with unread bytes resets the connection, and unsent data is lost.
TEST(WeirProxyCutOff, AClientThatSendsMoreThanItsLastRequestGetsItsWholeResponse) {
  const std::string body(1'000'000, 'x');
  std::promise<void> request_is_there;
  std::promise<void> more_is_there;
  std::promise<void> answered;
  TcpServer upstream([&](TcpConnection& connection) {
    connection.ReadThrough("abc");
    request_is_there.set_value();
    more_is_there.get_future().wait();
    connection.Send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1000000\r\n\r\n" +
                    body);
    connection.ReadAll();
    answered.set_value();
  });
  TempDir dir;
  WeirProcess weir({"proxy", "--upstream", "http://127.0.0.1:" + std::to_string(upstream.port()),
                    "--data", dir.path(), "--listen", "127.0.0.1:0"});
  TcpConnection client(weir.Port("proxy"));
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc");
  request_is_there.get_future().wait();
  client.Send("\r\n");  // as some clients do after a body
  more_is_there.set_value();
  answered.get_future().wait();
  client.ReadThrough("\r\n\r\n");
  EXPECT_EQ(client.ReadAll().size(), body.size());
}

}  // namespace
}  // namespace weir::test
