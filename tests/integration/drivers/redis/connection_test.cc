#include "drivers/redis/connection.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drivers/redis/script.h"
#include "support/certificates.h"
#include "support/redis_server.h"
#include "support/stopwatch.h"
#include "support/tcp_server.h"

namespace weir::redis {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

class RedisConnection : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new test::RedisServer; }
  static void TearDownTestSuite() { delete server_; }

  static ConnectionOptions Options(const std::string& url) {
    ConnectionOptions options = ConnectionOptions::Of(*ParseUrl(url));
    options.command_timeout = 5s;
    options.reconnect_delay = 1ms;
    options.max_reconnect_delay = 2ms;
    return options;
  }
  static ConnectionOptions Options() { return Options(server_->url()); }

  Answer Ask(Connection& connection, Command command) {
    std::optional<Answer> answer;
    connection.Send(std::move(command), [&](Answer a) { answer = std::move(a); });
    return Await(answer);
  }
  Answer Await(std::optional<Answer>& answer) {
    RunUntil([&] { return answer.has_value(); });
    return answer ? std::move(*answer) : Answer{.status = Error{Code::kInternal, "no answer"}};
  }
  /// Sends repeatedly until there is an answer: after a loss the first attempts may fail.
  Answer AskPatiently(Connection& connection, const Command& command) {
    Answer answer;
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    do {
      answer = Ask(connection, command);
    } while (!answer.status.ok() && std::chrono::steady_clock::now() < deadline);
    return answer;
  }
  template <typename Condition>
  void RunUntil(Condition condition) {
    io_.restart();
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!condition() && std::chrono::steady_clock::now() < deadline) io_.run_one_for(1s);
  }

  static test::RedisServer* server_;
  boost::asio::io_context io_;
};

test::RedisServer* RedisConnection::server_ = nullptr;

TEST_F(RedisConnection, AnswersInTheOrderOfTheCommands) {
  Connection connection(io_, Options());
  std::vector<std::int64_t> answers;
  for (int i = 0; i < 1000; ++i) {
    connection.Send({"INCR", "order"},
                    [&](const Answer& a) { answers.push_back(a.reply.integer); });
  }
  EXPECT_TRUE(answers.empty()) << "called back inside Send";
  EXPECT_EQ(connection.in_flight(), 1000U);
  RunUntil([&] { return answers.size() == 1000; });
  ASSERT_EQ(answers.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(answers[static_cast<std::size_t>(i)], i + 1);
}

TEST_F(RedisConnection, CarriesAnyBytes) {
  Connection connection(io_, Options());
  std::string bytes(300'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  EXPECT_TRUE(Ask(connection, {"SET", "bytes", bytes}).status.ok());
  EXPECT_EQ(Ask(connection, {"GET", "bytes"}).reply.text, bytes);
  EXPECT_EQ(Ask(connection, {"GET", "missing"}).reply.kind, Reply::Kind::kNil);
}

TEST_F(RedisConnection, TellsTheServersErrors) {
  Connection connection(io_, Options());
  const Answer answer = Ask(connection, {"NOSUCHCOMMAND"});
  ASSERT_FALSE(answer.status.ok());
  EXPECT_EQ(answer.status.error().code, Code::kInternal);
  EXPECT_EQ(answer.reply.kind, Reply::Kind::kError);
  EXPECT_TRUE(Ask(connection, {"PING"}).status.ok());
}

TEST_F(RedisConnection, SelectsItsDatabase) {
  Connection first(io_, Options());
  Connection second(io_, Options(server_->url() + "/5"));
  EXPECT_TRUE(Ask(second, {"SET", "db", "5"}).status.ok());
  EXPECT_EQ(Ask(first, {"EXISTS", "db"}).reply.integer, 0);
  EXPECT_EQ(Ask(second, {"EXISTS", "db"}).reply.integer, 1);
}

TEST_F(RedisConnection, RefusesMoreThanMayBeInFlight) {
  ConnectionOptions options = Options();
  options.max_in_flight = 1;
  Connection connection(io_, options);
  std::optional<Answer> first;
  connection.Send({"PING"}, [&](Answer a) { first = std::move(a); });
  const Answer second = Ask(connection, {"PING"});
  ASSERT_FALSE(second.status.ok());
  EXPECT_EQ(second.status.error().code, Code::kResourceExhausted);
  EXPECT_TRUE(Await(first).status.ok());
}

TEST_F(RedisConnection, UsesTlsAndAPassword) {
  test::Certificates certificates;
  test::RedisServer server({.password = "open sesame", .certificates = &certificates});
  const std::string at = "127.0.0.1:" + std::to_string(server.port());
  const std::string ca = "?ca=" + certificates.authority().string();

  Connection good(io_, Options("rediss://:open%20sesame@" + at + ca));
  EXPECT_EQ(Ask(good, {"PING"}).reply.text, "PONG");
  Connection named(io_, Options("rediss://default:open%20sesame@" + at + ca));
  EXPECT_EQ(Ask(named, {"PING"}).reply.text, "PONG");

  Connection wrong(io_, Options("rediss://:wrong@" + at + ca));
  const Answer refused = Ask(wrong, {"PING"});
  ASSERT_FALSE(refused.status.ok());
  EXPECT_EQ(refused.status.error().code, Code::kUnauthenticated);
  EXPECT_EQ(refused.status.error().message.find("wrong@"), std::string::npos);

  Connection stranger(io_, Options("rediss://:open%20sesame@" + at));
  EXPECT_FALSE(Ask(stranger, {"PING"}).status.ok()) << "trusted an unknown authority";
  Connection careless(io_, Options("rediss://:open%20sesame@" + at + "?verify=off"));
  EXPECT_EQ(Ask(careless, {"PING"}).reply.text, "PONG");
}

TEST_F(RedisConnection, ReturnsAfterTheServerWasKilled) {
  test::RedisServer server;
  Connection connection(io_, Options(server.url()));
  ASSERT_TRUE(Ask(connection, {"PING"}).status.ok());
  std::optional<Answer> cut;
  connection.Send({"BLPOP", "nothing", "0"}, [&](Answer a) { cut = std::move(a); });
  io_.run_for(20ms);
  server.Kill();
  const Answer lost = Await(cut);
  ASSERT_FALSE(lost.status.ok());
  EXPECT_EQ(lost.status.error().code, Code::kUnavailable);
  EXPECT_FALSE(Ask(connection, {"PING"}).status.ok());
  server.Start();
  EXPECT_TRUE(AskPatiently(connection, {"PING"}).status.ok());
}

TEST_F(RedisConnection, GivesUpAServerThatStandsStill) {
  test::RedisServer server;
  ConnectionOptions options = Options(server.url());
  options.command_timeout = 100ms;
  Connection connection(io_, options);
  ASSERT_TRUE(Ask(connection, {"PING"}).status.ok());
  server.Pause();
  for (int attempt = 0; attempt < 2; ++attempt) {  // on the old connection, then on a new one
    const test::Stopwatch watch;
    const Answer answer = Ask(connection, {"PING"});
    ASSERT_FALSE(answer.status.ok());
    EXPECT_EQ(answer.status.error().code, Code::kUnavailable);
    EXPECT_LT(watch.elapsed(), 1s);
  }
  server.Resume();
  EXPECT_TRUE(AskPatiently(connection, {"PING"}).status.ok());
}

TEST_F(RedisConnection, SurvivesAReplyThatIsCutShort) {
  test::TcpServer server([](test::TcpConnection& peer) {
    peer.ReadThrough("PING\r\n");
    peer.Send("*2\r\n$5\r\nhel");
  });
  Connection connection(io_, Options("redis://127.0.0.1:" + std::to_string(server.port())));
  for (int i = 0; i < 3; ++i) {
    const Answer answer = Ask(connection, {"PING"});
    ASSERT_FALSE(answer.status.ok());
    EXPECT_EQ(answer.status.error().code, Code::kUnavailable);
  }
}

TEST_F(RedisConnection, TellsThoseInFlightWhenItGoes) {
  std::optional<Answer> answer;
  {
    Connection connection(io_, Options());
    connection.Send({"PING"}, [&](Answer a) { answer = std::move(a); });
  }
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status.error().code, Code::kUnavailable);
  io_.run();
}

TEST_F(RedisConnection, MayGoInsideACallback) {
  auto connection = std::make_unique<Connection>(io_, Options());
  int answered = 0;
  connection->Send({"PING"}, [&](const Answer&) {
    ++answered;
    connection.reset();
  });
  connection->Send({"PING"}, [&](const Answer& a) {
    ++answered;
    EXPECT_FALSE(a.status.ok());
  });
  RunUntil([&] { return answered == 2; });
  EXPECT_EQ(answered, 2);
}

TEST_F(RedisConnection, ResolvesNames) {
  Connection connection(io_, Options("redis://localhost:" + std::to_string(server_->port())));
  EXPECT_TRUE(Ask(connection, {"PING"}).status.ok());
}

TEST_F(RedisConnection, LoadsAScriptThatTheServerForgot) {
  const Script script("return redis.call('INCRBY', KEYS[1], ARGV[1])");
  Connection connection(io_, Options());
  constexpr int kCalls = 200;
  std::vector<std::int64_t> totals;
  for (int i = 0; i < kCalls; ++i) {
    // Twice while calls are in flight.
    if (i % 100 == 50) connection.Send({"SCRIPT", "FLUSH"}, [](const Answer&) {});
    script.Call(connection, Command{"1", "scripted", "3"},
                [&](const Answer& a) { totals.push_back(a.status.ok() ? a.reply.integer : -1); });
  }
  RunUntil([&] { return totals.size() == kCalls; });
  ASSERT_EQ(totals.size(), static_cast<std::size_t>(kCalls));
  std::sort(totals.begin(), totals.end());
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_EQ(totals[static_cast<std::size_t>(i)], 3 * (i + 1)) << "lost or run twice";
  }
}

}  // namespace
}  // namespace weir::redis
