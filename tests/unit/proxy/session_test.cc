#include "proxy/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/tcp_server.h"

namespace weir::proxy {
namespace {

using std::chrono::milliseconds;
using test::TcpConnection;
using test::TcpServer;
using ::testing::EndsWith;

/// A client like one behind TLS: all output to it is accepted immediately, and leaves later.
struct SlowClient {
  std::string arrived;
  std::string taken;
  bool flushed = false;
  bool ended = false;
  bool shut_down = false;
  bool closed = false;
  net::Transport::Watcher* watcher = nullptr;
  boost::intrusive_ptr<net::Counted> reading;
  boost::intrusive_ptr<net::Counted> writing;

  void Readable() {
    if (const auto alive = std::move(reading)) watcher->OnReadable();
  }
  void Flush() {
    flushed = true;
    if (const auto alive = std::move(writing)) watcher->OnWritable();
  }
};

class SlowTransport final : public net::Transport {
 public:
  explicit SlowTransport(SlowClient& client) : client_(client) {}

  void Attach(net::Counted& owner, Watcher& watcher) noexcept override {
    owner_ = &owner;
    client_.watcher = &watcher;
  }
  bool is_open() const noexcept override { return !client_.closed; }
  bool flushed() const noexcept override { return client_.flushed || client_.taken.empty(); }
  bool more() const noexcept override { return false; }
  Received Receive(std::span<char> space) noexcept override {
    if (client_.arrived.empty()) return {client_.ended ? Outcome::kEnd : Outcome::kNothing};
    const std::string bytes = std::exchange(client_.arrived, {});
    std::copy(bytes.begin(), bytes.end(), space.begin());
    return {Outcome::kBytes, bytes.size()};
  }
  using Transport::Send;
  std::ptrdiff_t Send(std::string_view bytes, std::string_view rest) noexcept override {
    client_.taken.append(bytes).append(rest);
    return static_cast<std::ptrdiff_t>(bytes.size() + rest.size());
  }
  void AwaitReadable() override { client_.reading.reset(owner_); }
  void AwaitWritable() override { client_.writing.reset(owner_); }
  void AwaitTurn() override {}
  void AwaitSpare() override { AwaitReadable(); }
  bool ShutDownSend() noexcept override { return client_.shut_down = true; }
  void Close() noexcept override {
    client_.closed = true;
    client_.reading.reset();
    client_.writing.reset();
  }

 private:
  SlowClient& client_;
  net::Counted* owner_ = nullptr;
};

/// A session whose client reads its answer late, in front of an upstream that answers `ok`.
class SessionTest : public ::testing::Test {
 protected:
  SessionTest()
      : upstream_([](TcpConnection& connection) {
          while (true) {
            connection.ReadThrough("\r\n\r\n");
            connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
          }
        }),
        reactor_(0, 10) {
    options_.upstreams = {*ResolveUpstream("http://127.0.0.1:" + std::to_string(upstream_.port()))};
    options_.timeouts.linger = milliseconds(200);
    options_.timeouts.idle = milliseconds(300);
    options_.timeouts.stall = milliseconds(60'000);
    shared_.emplace(reactor_, options_, nullptr);
  }
  ~SessionTest() override {
    if (!client_.closed) session_->Abort();
    shared_->pool.Clear();
  }

  /// Runs until the session has sent all of its answer.
  void Ask(const std::string& request) {
    session_.reset(new Session(reactor_, std::make_unique<SlowTransport>(client_),
                               *IpAddress::Parse("127.0.0.1"), *shared_));
    session_->Start();
    client_.arrived = request;
    client_.Readable();
    while (!client_.taken.ends_with("ok") && !client_.closed) {
      ASSERT_GT(reactor_.context().run_one_for(std::chrono::seconds(60)), 0U);
    }
    reactor_.context().poll();
  }

  void Pass(milliseconds time) {
    for (milliseconds passed{0}; passed < time; passed += net::TimerWheel::kTick) {
      reactor_.timers().Tick();
    }
  }

  TcpServer upstream_;
  net::Reactor reactor_;
  ProxyOptions options_;
  std::optional<Shared> shared_;
  SlowClient client_;
  boost::intrusive_ptr<Session> session_;
};

constexpr const char* kLast = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

TEST_F(SessionTest, TheEndOfTheLastResponseIsNotLostToASlowClient) {
  Ask(kLast);
  ASSERT_THAT(client_.taken, EndsWith("\r\n\r\nok"));
  Pass(milliseconds(30'000));
  EXPECT_FALSE(client_.closed) << "with bytes that have not left";
  client_.Flush();
  EXPECT_TRUE(client_.shut_down);
  EXPECT_FALSE(client_.closed) << "while the client may be sending";
  Pass(milliseconds(1'000));
  EXPECT_TRUE(client_.closed);
}

TEST_F(SessionTest, AClientThatTakesNothingIsNotWaitedForForEver) {
  Ask(kLast);
  Pass(milliseconds(61'000));
  EXPECT_TRUE(client_.closed);
}

TEST_F(SessionTest, AClientThatHasEndedItsSideGetsTheEndOfItsResponse) {
  Ask(kLast);
  client_.ended = true;
  client_.Readable();
  EXPECT_FALSE(client_.closed);
  client_.Flush();
  EXPECT_TRUE(client_.closed);
}

TEST_F(SessionTest, AResponseThatHasNotLeftDoesNotEndWithTheIdleTime) {
  Ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  Pass(milliseconds(10'000));
  EXPECT_FALSE(client_.closed);
  client_.Flush();
  Pass(milliseconds(1'000));
  EXPECT_TRUE(client_.closed);
}

}  // namespace
}  // namespace weir::proxy
