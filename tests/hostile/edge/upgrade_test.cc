// An upgraded connection is a tunnel that bypasses the limits, unless its contents are understood.

#include "hostile/edge/proxy_fixture.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kOnce = R"(
policies:
  - name: per-ip
    match: { ip: "*" }
    quota: { fixed_window: { limit: 1, window: 100d } }
)";

/// Accepts every requested upgrade and then echoes what it receives.
class Upgrade : public ProxyProgramTest {
 protected:
  void Answer(TcpConnection& connection, const std::string& request) override {
    Remember(request);
    const auto at = request.find("\r\nUpgrade: ");
    if (at == std::string::npos) {
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      return;
    }
    const std::string protocol = request.substr(at + 11, request.find("\r\n", at + 2) - at - 11);
    connection.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " +
                    protocol + "\r\n\r\n");
    while (true) connection.Send(connection.Read(1));
  }

  static std::string Asking(const std::string& protocol) {
    return "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: " +
           protocol + "\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
  }

  int StatusOf(const std::string& request) {
    TcpConnection client(port_);
    client.Send(request);
    return std::stoi(client.ReadThrough("\r\n\r\n").substr(9, 3));
  }
};

TEST_F(Upgrade, H2cIsARequestLikeAnyOther) {
  Start(kOnce);
  HttpClient client(port_);
  client.SendRaw(Asking("h2c") + "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().status, 200);
  EXPECT_EQ(client.ReadResponse().status, 429);  // what follows is a request, and counted
  ASSERT_EQ(requests().size(), 1U);
  EXPECT_THAT(requests()[0], Not(HasSubstr("h2c")));
  EXPECT_THAT(requests()[0], Not(HasSubstr("HTTP2-Settings")));
}

TEST_F(Upgrade, OnlyWhatIsAllowedIsOffered) {
  Start("", {"--per-ip", "100/1h"});
  EXPECT_EQ(StatusOf(Asking("h2c, WebSocket, TLS/1.0")), 101);
  EXPECT_THAT(requests().back(), HasSubstr("\r\nUpgrade: websocket\r\n"));
  EXPECT_THAT(requests().back(), Not(HasSubstr("TLS/1.0")));
  // A body before a tunnel is where two servers may disagree.
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     "Content-Length: 1\r\n\r\nx"),
            200);
}

TEST_F(Upgrade, OthersCanBeAllowed) {
  Start("", {"--per-ip", "100/1h", "--upgrades", "websocket,custom"});
  EXPECT_EQ(StatusOf(Asking("custom")), 101);
  EXPECT_EQ(StatusOf(Asking("h2c")), 200);
}

TEST_F(Upgrade, NoneNeedBeAllowed) {
  Start("", {"--per-ip", "100/1h", "--upgrades", "off"});
  EXPECT_EQ(StatusOf(Asking("websocket")), 200);
}

/// A masked text frame, as clients send them, with an empty mask.
std::string Frame(char first, const std::string& payload) {
  return std::string(1, first) + static_cast<char>(0x80 | payload.size()) + std::string(4, '\0') +
         payload;
}
constexpr char kText = '\x81';
constexpr char kPing = '\x89';
constexpr char kStartOfText = '\x01';
constexpr char kEndOfText = '\x80';

constexpr const char* kFiveMessages = R"(
domain: websocket
policies:
  - name: messages
    match: { ip: "*", route: /chat }
    quota: { fixed_window: { limit: 5, window: 100d } }
)";

TEST_F(Upgrade, FramesThatContinueNoMessageAreNotAWayPastTheCount) {
  Start(kFiveMessages, {"--websocket-messages", "true"});
  for (const char first : {kEndOfText, '\x83', '\x8b'}) {  // the latter two are reserved
    TcpConnection client(port_);
    client.Send(Asking("websocket"));
    EXPECT_THAT(client.ReadThrough("\r\n\r\n"), HasSubstr("101"));
    client.Send(Frame(first, "uncounted"));
    EXPECT_EQ(client.ReadAll(), "");
  }
}

TEST_F(Upgrade, MessagesAreCounted) {
  Start(kFiveMessages, {"--websocket-messages", "true"});
  TcpConnection client(port_);
  client.Send(Asking("websocket"));
  EXPECT_THAT(client.ReadThrough("\r\n\r\n"), HasSubstr("101"));
  // Two messages, one of them in two frames, split at every byte.
  const std::string first =
      Frame(kText, "hello") + Frame(kStartOfText, "in two ") + Frame(kEndOfText, "parts");
  for (const char byte : first) client.Send(std::string(1, byte));
  EXPECT_EQ(client.Read(first.size()), first);
  // Three more frames together and the one that exceeds the limit: it does not reach the upstream.
  const std::string more = Frame(kPing, "") + Frame(kText, "4") + Frame(kText, "5");
  client.Send(more + Frame(kText, "the sixth"));
  const std::string back = client.ReadAll();
  EXPECT_TRUE(more.starts_with(back)) << back;
  EXPECT_THAT(back, Not(HasSubstr("the sixth")));

  // A new connection does not get a new limit.
  TcpConnection again(port_);
  again.Send(Asking("websocket"));
  again.ReadThrough("\r\n\r\n");
  again.Send(Frame(kText, "a seventh"));
  EXPECT_EQ(again.ReadAll(), "");
}

}  // namespace
}  // namespace weir::test
