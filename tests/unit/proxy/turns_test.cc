// A client that sends endlessly gets its share of a reactor and no more, whatever it requests.

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "proxy/session.h"
#include "support/scripted_transport.h"

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

}  // namespace
}  // namespace weir::proxy
