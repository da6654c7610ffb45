#include "service/resp_door.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "net/reactor_pool.h"
#include "support/tcp_connection.h"
#include "support/wait.h"
#include "unit/protocol/resp/bucket_limiter.h"

namespace weir::service {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::TcpConnection;

// Answers on a later turn of the reactor, like a store across the network.
class LateLimiter final : public limiter::Limiter {
 public:
  explicit LateLimiter(boost::asio::io_context& context) : context_(context) {}
  void Decide(std::span<limiter::Check> checks, store::Done done) override {
    boost::asio::post(context_, [this, checks, done] { limiter_.Decide(checks, done); });
  }
  void Apply(std::span<store::Application> batch, store::Done done) override {
    if (hold) {
      held.emplace_back([this, batch, done] { limiter_.Apply(batch, done); });
      ++holding;
      return;
    }
    boost::asio::post(context_, [this, batch, done] { limiter_.Apply(batch, done); });
  }

  std::atomic<bool> hold{false};
  std::atomic<int> holding{0};
  std::vector<std::function<void()>> held;  // only used by the reactor's thread

 private:
  boost::asio::io_context& context_;
  resp::BucketLimiter limiter_;
};

// The endpoint on one reactor, with a limiter that answers immediately or late.
class RespDoorTest : public ::testing::TestWithParam<bool> {
 protected:
  void Start(RespOptions options = {}) {
    pool_.emplace(net::PoolOptions{.reactors = 1, .max_connections = 64});
    door_.emplace(
        1,
        [this](net::Reactor& reactor) -> limiter::Limiter& {
          if (GetParam()) return late_.emplace(reactor.context());
          return now_;
        },
        std::move(options));
    const auto endpoint = pool_->Listen(*door_, "127.0.0.1:0");
    ASSERT_TRUE(endpoint.ok());
    port_ = endpoint->port();
    pool_->Start();
  }

  void TearDown() override {
    pool_.reset();
    door_.reset();
  }

  resp::BucketLimiter now_;
  std::optional<LateLimiter> late_;
  std::optional<RespDoor> door_;
  std::optional<net::ReactorPool> pool_;
  std::uint16_t port_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Store, RespDoorTest, ::testing::Values(false, true),
                         [](const auto& test) { return test.param ? "Late" : "AtOnce"; });

constexpr std::string_view kThrottle =
    "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$1\r\n4\r\n$1\r\n1\r\n$4\r\n3600\r\n";

TEST_P(RespDoorTest, AnswersCommandsSplitAtEveryByte) {
  Start();
  TcpConnection client(port_);
  for (const char byte : kThrottle) client.Send({&byte, 1});
  EXPECT_EQ(client.Read(28), "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:3600\r\n");
  client.Send("PING\r\n");
  EXPECT_EQ(client.Read(7), "+PONG\r\n");
}

TEST_P(RespDoorTest, AHundredThousandCommandsInOneWrite) {
  Start();
  TcpConnection client(port_);
  std::string input;
  for (int i = 0; i < 100'000; ++i) {
    input += i % 10 == 9 ? "PING\r\n" : std::string(kThrottle);
  }
  input += "ECHO end\r\n";
  // The client does not read until it has written everything, so its own buffers must hold what the
  // server can no longer send: a thread writes while this one reads.
  std::thread writer([&] { client.Send(input); });
  std::string replies = client.ReadThrough("$3\r\nend\r\n");
  writer.join();
  std::size_t throttles = 0;
  std::size_t allowed = 0;
  for (std::size_t at = replies.find('*'); at != std::string::npos;
       at = replies.find('*', at + 1)) {
    ++throttles;
    if (replies.compare(at, 6, "*5\r\n:0") == 0) ++allowed;
  }
  EXPECT_EQ(throttles, 90'000U);
  EXPECT_EQ(allowed, 5U);
  std::size_t pongs = 0;
  for (std::size_t at = replies.find("+PONG"); at != std::string::npos;
       at = replies.find("+PONG", at + 1)) {
    ++pongs;
  }
  EXPECT_EQ(pongs, 10'000U);
}

TEST_P(RespDoorTest, APeerThatDoesNotReadIsNotReadFromEither) {
  Start({.times = {.write = milliseconds(300)}});
  TcpConnection client(port_);
  const int small = 4096;
  setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  std::string input;
  while (input.size() < 256 * 1024) input += "ECHO " + std::string(1000, 'x') + "\r\n";
  // Replies pile up until the server stops reading, our writes stop too, and the server gives up.
  std::size_t written = 0;
  const bool gave_up = test::WaitUntil([&] {
    const ssize_t count =
        send(client.fd(), input.data(), input.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) written += static_cast<std::size_t>(count);
    return count < 0 && errno != EAGAIN;
  });
  EXPECT_TRUE(gave_up);
  EXPECT_LT(written, 64U * 1024 * 1024)
      << "memory is bounded by what the server is willing to keep";
}

TEST_P(RespDoorTest, OversizedInputGetsAClearErrorAndACloseEvenWhileSending) {
  Start();
  const auto last_words = [&](std::string_view input) {
    TcpConnection client(port_);
    std::thread writer([&] {
      try {
        client.Send(input);
        client.FinishSending();
      } catch (const std::exception&) {  // closed by the server
      }
    });
    std::string words = client.ReadAll();
    writer.join();
    return words;
  };
  const std::string megabytes(3 * 1024 * 1024, 'x');
  EXPECT_EQ(last_words(megabytes), "-ERR Protocol error: too big inline request\r\n");
  EXPECT_EQ(last_words("*1\r\n$600000000\r\n" + megabytes),
            "-ERR Protocol error: invalid bulk length\r\n");
  EXPECT_EQ(last_words("*1000000\r\n" + megabytes), "-ERR Protocol error: too many arguments\r\n");
  EXPECT_EQ(last_words("PING\r\n*1\r\n*1\r\n*1\r\n"),
            "+PONG\r\n-ERR Protocol error: expected '$', got '*'\r\n");
}

TEST_P(RespDoorTest, ALargeCommandArrivesInPieces) {
  Start();
  TcpConnection client(port_);
  const std::string large(500 * 1024, 'y');
  client.Send("*2\r\n$4\r\nECHO\r\n$" + std::to_string(large.size()) + "\r\n" + large + "\r\n");
  EXPECT_EQ(client.ReadThrough("\r\n"), "$512000\r\n");
  EXPECT_EQ(client.Read(large.size()), large);
}

TEST_P(RespDoorTest, AnswersAPeerThatHasFinishedSending) {
  Start();
  TcpConnection client(port_);
  client.Send("PING\r\nCL.THROTTLE k 4 1 3600\r\nPING");
  client.FinishSending();
  EXPECT_EQ(client.ReadAll(), "+PONG\r\n*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:3600\r\n");
}

TEST_P(RespDoorTest, IdleConnectionsAreClosed) {
  Start({.times = {.idle = milliseconds(200)}});
  TcpConnection client(port_);
  client.Send("PING\r\n");
  EXPECT_EQ(client.ReadAll(), "+PONG\r\n");
}

TEST_P(RespDoorTest, DrainAnswersWhatHasComeAndCloses) {
  Start();
  TcpConnection idle(port_);
  TcpConnection half(port_);
  half.Send("PING\r\nPIN");
  EXPECT_EQ(half.Read(7), "+PONG\r\n");
  EXPECT_TRUE(pool_->Drain(seconds(5)));
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_EQ(half.ReadAll(), "");
}

TEST_P(RespDoorTest, ManyConnectionsAtOnce) {
  Start();
  std::vector<std::unique_ptr<TcpConnection>> clients;
  for (int i = 0; i < 60; ++i) clients.push_back(std::make_unique<TcpConnection>(port_));
  for (int round = 0; round < 20; ++round) {
    for (auto& client : clients) client->Send("ECHO a\r\nECHO bc\r\n");
    for (auto& client : clients) EXPECT_EQ(client->Read(15), "$1\r\na\r\n$2\r\nbc\r\n");
  }
}

TEST_P(RespDoorTest, AConnectionMayGoWhileTheStoreWorksForIt) {
  if (!GetParam()) GTEST_SKIP() << "needs a store that answers late";
  Start();
  {
    TcpConnection first(port_);
    first.Send("PING\r\n");
    first.Read(7);
    late_->hold = true;
    first.Send(kThrottle);
    ASSERT_TRUE(test::WaitUntil([&] { return late_->holding == 1; }));
  }
  TcpConnection second(port_);
  late_->hold = false;
  second.Send("PING\r\n");
  EXPECT_EQ(second.Read(7), "+PONG\r\n") << "the reset of the first has been seen by now";
  std::atomic<bool> answered{false};
  boost::asio::post(pool_->reactor(0).context(), [&] {
    for (const auto& answer : late_->held) answer();
    answered = true;
  });
  EXPECT_TRUE(test::WaitUntil([&] { return answered.load(); }));
  second.Send(kThrottle);
  EXPECT_EQ(second.Read(28), "*5\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:7200\r\n") << "the charge stands";
}

}  // namespace
}  // namespace weir::service
