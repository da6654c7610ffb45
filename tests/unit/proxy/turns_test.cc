// A client that sends endlessly gets its share of a reactor and no more, whatever it requests.

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "proxy/session.h"
#include "support/scripted_transport.h"
#include "support/tcp_server.h"

namespace weir::proxy {
namespace {

using net::Transport;

class RefusesAll final : public limiter::Limiter {
 public:
  void Decide(std::span<limiter::Check> checks, store::Done done) override {
    for (limiter::Check& check : checks) check.decision = {.verdict = Verdict::kLimited};
    done();
  }
  void Apply(std::span<store::Application>, store::Done done) override { done(); }
};

class ProxyTurns : public ::testing::Test {
 protected:
  ProxyTurns() : shared_(reactor_, options_, &limiter_) {
    wire_.room = std::size_t{1} << 20U;
    session_.reset(new Session(reactor_, std::make_unique<test::ScriptedTransport>(wire_),
                               *IpAddress::Parse("127.0.0.1"), shared_));
    session_->Start();
  }
  ~ProxyTurns() override {
    session_->Abort();
    wire_.LetGo();
    shared_.pool.Clear();
  }

  /// The number of answers since the last call.
  std::size_t Answers() {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = wire_.taken.find("HTTP/1.1 429", at)) != std::string::npos; ++at)
      ++count;
    wire_.taken.clear();
    return count;
  }

  net::Reactor reactor_{0, 10};
  ProxyOptions options_;
  RefusesAll limiter_;
  Shared shared_;
  test::Wire wire_;
  boost::intrusive_ptr<Session> session_;
};

TEST_F(ProxyTurns, ManyRequestsInOneReadTakeManyTurns) {
  constexpr std::size_t kRequests = 1000;
  for (std::size_t i = 0; i < kRequests; ++i) wire_.arrived += "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  ASSERT_NE(wire_.readable, nullptr);
  wire_.Tell(wire_.readable, &Transport::Watcher::OnReadable);
  std::size_t answered = Answers();
  EXPECT_GT(answered, 0U);
  for (std::size_t turn = 0; answered < kRequests && turn < kRequests; ++turn) {
    // Bytes that have arrived wait for the turn, too, or there would be a way around it.
    ASSERT_EQ(wire_.readable, nullptr);
    ASSERT_NE(wire_.turn, nullptr);
    wire_.Tell(wire_.turn, &Transport::Watcher::OnTurn);
    const std::size_t now = Answers();
    EXPECT_LE(now, 32U);
    answered += now;
  }
  EXPECT_EQ(answered, kRequests);
  EXPECT_EQ(wire_.broken_rules, 0U);
  EXPECT_NE(wire_.readable, nullptr);
  EXPECT_EQ(wire_.turn, nullptr);
}

class AllowsAll final : public limiter::Limiter {
 public:
  void Decide(std::span<limiter::Check> checks, store::Done done) override {
    asked += checks.size();
    for (limiter::Check& check : checks) check.decision = {.verdict = Verdict::kAllowed};
    done();
  }
  void Apply(std::span<store::Application>, store::Done done) override { done(); }

  std::size_t asked = 0;
};

TEST(ProxyTunnelTurns, ManyMessagesInOneReadTakeManyTurns) {
  constexpr std::size_t kMessages = 1000;
  test::TcpServer upstream([](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send("HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    connection.Read(kMessages * 6);
  });
  net::Reactor reactor(0, 10);
  ProxyOptions options;
  options.upstreams = {*ResolveUpstream("http://127.0.0.1:" + std::to_string(upstream.port()))};
  options.websocket_messages = true;
  AllowsAll limiter;
  Shared shared(reactor, options, &limiter);
  test::Wire wire;
  wire.room = std::size_t{1} << 20U;
  const boost::intrusive_ptr<Session> session(
      new Session(reactor, std::make_unique<test::ScriptedTransport>(wire),
                  *IpAddress::Parse("127.0.0.1"), shared));
  session->Start();
  wire.arrived = "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
  wire.Tell(wire.readable, &Transport::Watcher::OnReadable);
  while (wire.readable == nullptr) {
    ASSERT_GT(reactor.context().run_one_for(std::chrono::seconds(60)), 0U);
  }
  for (std::size_t i = 0; i < kMessages; ++i) wire.arrived += {'\x81', '\x80', 0, 0, 0, 0};
  limiter.asked = 0;
  wire.Tell(wire.readable, &Transport::Watcher::OnReadable);
  EXPECT_LE(limiter.asked, 32U);
  while (limiter.asked < kMessages) {
    const std::size_t before = limiter.asked;
    ASSERT_EQ(wire.readable, nullptr);
    if (wire.turn != nullptr) {
      wire.Tell(wire.turn, &Transport::Watcher::OnTurn);
    } else {  // the upstream has yet to take what was sent
      ASSERT_GT(reactor.context().run_one_for(std::chrono::seconds(60)), 0U);
    }
    EXPECT_LE(limiter.asked - before, 32U);
  }
  EXPECT_EQ(limiter.asked, kMessages);
  session->Abort();
  wire.LetGo();
  shared.pool.Clear();
}

}  // namespace
}  // namespace weir::proxy
