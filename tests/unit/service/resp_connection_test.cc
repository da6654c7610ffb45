#include "service/resp_connection.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/scripted_transport.h"

namespace weir::service {
namespace {

using test::ScriptedTransport;
using test::Wire;

/// Never called.
class NoLimiter final : public limiter::Limiter {
 public:
  void Decide(std::span<limiter::Check>, store::Done done) override { done(); }
  void Apply(std::span<store::Application>, store::Done done) override { done(); }
};

class RespConnectionTest : public ::testing::Test {
 protected:
  RespConnectionTest() {
    connection_ = new RespConnection(reactor_, worker_, std::make_unique<ScriptedTransport>(wire_),
                                     "127.0.0.1:1", "127.0.0.1:2");
    wire_.room = std::size_t{1} << 30U;
    connection_->Start();
  }
  ~RespConnectionTest() override {
    connection_->Abort();
    wire_.LetGo();
  }

  static std::string Bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  }

  /// One turn of the connection.
  void Turn() {
    auto& waits = wire_.turn ? wire_.turn : wire_.readable;
    ASSERT_TRUE(waits);
    wire_.Tell(waits, wire_.turn ? &net::Transport::Watcher::OnTurn
                                 : &net::Transport::Watcher::OnReadable);
  }

  NoLimiter limiter_;
  const RespOptions options_;
  resp::Service service_;
  net::DoorMetrics metrics_;
  RespWorker worker_{options_, service_, limiter_, metrics_};
  net::Reactor reactor_{0, 10};
  Wire wire_;
  boost::intrusive_ptr<RespConnection> connection_;
};

// A client that has sent much gets no longer turns for it: a read takes 16 KiB, of 6-byte commands.
TEST_F(RespConnectionTest, AReadIsSmallHoweverLargeTheBufferHasBecome) {
  const std::string large =
      "*3\r\n" + Bulk("NONE") + Bulk(std::string(300'000, 'a')) + Bulk(std::string(300'000, 'b'));
  wire_.arrived = large.substr(0, 550'000);
  for (int i = 0; i < 1'000 && !wire_.arrived.empty(); ++i) Turn();
  ASSERT_TRUE(wire_.arrived.empty());
  ASSERT_EQ(service_.commands_total.load(), 0);
  wire_.arrived = large.substr(550'000);
  for (int i = 0; i < 100'000; ++i) wire_.arrived += "PING\r\n";
  for (int i = 0; i < 1'000 && service_.commands_total.load() == 0; ++i) Turn();
  constexpr int kReadsOfATurn = 2;
  EXPECT_LE(service_.commands_total.load(), kReadsOfATurn * (16 * 1024 / 6 + 1));
  for (int i = 0; i < 1'000 && !wire_.arrived.empty(); ++i) Turn();
  EXPECT_EQ(service_.commands_total.load(), 100'001);
}

// Replies that the client reads late are no reason to wait longer for AUTH.
TEST_F(RespConnectionTest, TheTimeToLogInIsNotEarnedByRepliesThatAreReadLate) {
  service_.authenticate = [](std::string_view) { return false; };
  Wire wire;
  boost::intrusive_ptr<RespConnection> stranger(new RespConnection(
      reactor_, worker_, std::make_unique<ScriptedTransport>(wire), "127.0.0.1:1", "127.0.0.1:2"));
  stranger->Start();
  const auto pass = [&](int seconds) {
    for (int i = 0; i < 10 * seconds; ++i) reactor_.timers().Tick();
  };
  pass(4);
  wire.arrived = "PING\r\n";
  wire.Tell(wire.readable, &net::Transport::Watcher::OnReadable);
  EXPECT_TRUE(wire.blocked);
  pass(4);
  wire.room = 1'000;
  wire.blocked = false;
  ASSERT_TRUE(wire.writable);
  wire.Tell(wire.writable, &net::Transport::Watcher::OnWritable);
  EXPECT_NE(wire.taken.find("NOAUTH"), std::string::npos);
  EXPECT_FALSE(wire.closed);
  pass(3);  // eleven in all, and ten are the limit
  EXPECT_TRUE(wire.closed);
  stranger->Abort();
  wire.LetGo();
}

}  // namespace
}  // namespace weir::service
