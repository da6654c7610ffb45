#include "drivers/postgres/connection.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "drivers/postgres/migration.h"
#include "support/postgres_server.h"
#include "support/wait.h"

namespace weir::postgres {
namespace {

using namespace std::chrono_literals;

class PostgresConnection : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new test::PostgresServer; }
  static void TearDownTestSuite() { delete server_; }

  ConnectionOptions Options() const {
    return {.url = server_->url(), .statement_timeout = 5000ms, .reconnect_delay = 1ms};
  }

  Answer Ask(Connection& connection, const char* sql, Params params = {}) {
    io_.restart();
    std::optional<Answer> answer;
    connection.Send(sql, std::move(params), [&](Answer a) { answer = std::move(a); });
    while (!answer && io_.run_one_for(std::chrono::seconds(10)) > 0) {
    }
    return answer ? std::move(*answer) : Answer{.status = Error{Code::kInternal, "no answer"}};
  }

  static test::PostgresServer* server_;
  boost::asio::io_context io_;
};

test::PostgresServer* PostgresConnection::server_ = nullptr;

TEST_F(PostgresConnection, CarriesEveryTypeThereAndBack) {
  Connection connection(io_, Options());
  const std::vector<std::int64_t> numbers = {1, -2, std::int64_t{1} << 62};
  const std::vector<std::optional<std::string_view>> texts = {"a", std::nullopt, ""};
  Answer answer =
      Ask(connection,
          "SELECT $1, $2, $3, $4[2], $4[3], $5[1], $5[2], $5[3], cardinality($6), "
          "(-7)::int2, (-8)::int4",
          Params().Text("zażółć").Int(-5).Bool(true).IntArray(numbers).TextArray(texts).TextArray(
              std::span<const std::string_view>{}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error().message;
  ASSERT_EQ(answer.rows.size(), 1);
  EXPECT_EQ(answer.rows.Text(0, 0), "zażółć");
  EXPECT_EQ(answer.rows.Int(0, 1), -5);
  EXPECT_EQ(answer.rows.Int(0, 2), 1);
  EXPECT_EQ(answer.rows.Int(0, 3), -2);
  EXPECT_EQ(answer.rows.Int(0, 4), std::int64_t{1} << 62);
  EXPECT_EQ(answer.rows.Text(0, 5), "a");
  EXPECT_TRUE(answer.rows.IsNull(0, 6));
  EXPECT_FALSE(answer.rows.IsNull(0, 7));
  EXPECT_EQ(answer.rows.Int(0, 8), 0);
  EXPECT_EQ(answer.rows.Int(0, 9), -7);
  EXPECT_EQ(answer.rows.Int(0, 10), -8);
}

// The server answers COMMIT as usual, with a warning, if its wait for the standby is cancelled.
TEST_F(PostgresConnection, ACommitThatNoStandbyHasConfirmedIsNotOne) {
  Connection connection(io_, Options());
  ASSERT_TRUE(Ask(connection, "CREATE TABLE unconfirmed (n int8)").status.ok());
  server_->Query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  server_->Query("SELECT pg_reload_conf()");
  std::thread administrator([] {
    EXPECT_TRUE(test::WaitUntil([] {
      return server_->Query(
                 "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = "
                 "'SyncRep'") == "1";
    }));
  });
  // The server's processes apply the setting one by one: until then commits do not wait.
  Answer alone;
  std::int64_t tries = 0;
  const auto refused = [&] {
    alone = Ask(connection, "INSERT INTO unconfirmed VALUES (1)");
    ++tries;
    return !alone.status.ok();
  };
  EXPECT_TRUE(test::WaitUntil(refused));
  administrator.join();
  server_->Query("ALTER SYSTEM RESET synchronous_standby_names");
  server_->Query("SELECT pg_reload_conf()");
  ASSERT_FALSE(alone.status.ok());
  EXPECT_EQ(alone.status.error().code, Code::kUnavailable);
  EXPECT_EQ(server_->Query("SELECT count(*) FROM unconfirmed"), std::to_string(tries));
  EXPECT_TRUE(Ask(connection, "INSERT INTO unconfirmed VALUES (2)").status.ok());
}

TEST_F(PostgresConnection, TwoAddressesOfOneServerAreNotTwoPrimaries) {
  const std::string port = std::to_string(server_->port());
  ConnectionOptions options = Options();
  options.url = "postgres://weir@127.0.0.1:" + port + ",localhost:" + port + "/postgres";
  Connection connection(io_, options);
  EXPECT_TRUE(Ask(connection, "SELECT 1").status.ok());
}

TEST_F(PostgresConnection, OfTwoServersThatAcceptWritesNeitherIsUsed) {
  const std::string first = "127.0.0.1:" + std::to_string(server_->port());
  test::PostgresServer other;
  const std::string second = "127.0.0.1:" + std::to_string(other.port());
  ConnectionOptions options = Options();
  options.url = "postgres://weir@" + first + "," + second + "/postgres";
  Connection connection(io_, options);
  const Answer refused = Ask(connection, "SELECT 1");
  ASSERT_FALSE(refused.status.ok());
  EXPECT_EQ(refused.status.error().code, Code::kUnavailable);
  EXPECT_NE(refused.status.error().message.find(first + " and " + second), std::string::npos)
      << refused.status.error().message;
  EXPECT_FALSE(Migrate(options.url, "test", {}).ok());
  // Several primaries on purpose require this option.
  options.url += "?target_session_attrs=any";
  Connection any(io_, options);
  EXPECT_TRUE(Ask(any, "SELECT 1").status.ok());
  other.Stop();
  EXPECT_TRUE(test::WaitUntil([&] { return Ask(connection, "SELECT 1").status.ok(); }));
}

TEST_F(PostgresConnection, AnswersAPipelineInOrderAndAFailureTakesNobodyWithIt) {
  Connection connection(io_, Options());
  std::vector<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const char* sql = i % 10 == 3 ? "SELECT 1 / ($1 - $1)" : "SELECT $1 + 1";
    connection.Send(sql, Params().Int(i), [&seen](Answer answer) {
      seen.push_back(answer.status.ok() ? std::to_string(answer.rows.Int(0, 0)) : answer.sqlstate);
    });
  }
  while (seen.size() < 100 && io_.run_one_for(std::chrono::seconds(10)) > 0) {
  }
  ASSERT_EQ(seen.size(), 100U);
  for (int i = 0; i < 100; ++i) {
    // 22012 is division by zero.
    EXPECT_EQ(seen[static_cast<std::size_t>(i)], i % 10 == 3 ? "22012" : std::to_string(i + 1));
  }
}

TEST_F(PostgresConnection, MapsWhatTheServerRefuses) {
  Connection connection(io_, Options());
  ASSERT_TRUE(Ask(connection, "CREATE TABLE once(id bigint PRIMARY KEY)").status.ok());
  Answer first = Ask(connection, "INSERT INTO once VALUES ($1)", Params().Int(1));
  ASSERT_TRUE(first.status.ok());
  EXPECT_EQ(first.rows.affected(), 1);
  Answer again = Ask(connection, "INSERT INTO once VALUES ($1)", Params().Int(1));
  ASSERT_FALSE(again.status.ok());
  EXPECT_EQ(again.status.error().code, Code::kAlreadyExists);
  EXPECT_EQ(again.sqlstate, "23505");
  // A statement whose preparation failed is prepared again the next time.
  EXPECT_FALSE(Ask(connection, "SELECT * FROM later").status.ok());
  ASSERT_TRUE(Ask(connection, "CREATE TABLE later()").status.ok());
  EXPECT_TRUE(Ask(connection, "SELECT * FROM later").status.ok());
}

TEST_F(PostgresConnection, FailsWhatIsInFlightWhenTheBackendDiesAndConnectsAgain) {
  Connection connection(io_, Options());
  ASSERT_TRUE(Ask(connection, "SELECT 1").status.ok());
  std::optional<Answer> answer;
  connection.Send("SELECT pg_sleep(60)", {}, [&](Answer a) { answer = std::move(a); });
  io_.restart();
  io_.poll();
  EXPECT_GE(server_->TerminateBackends(), 1);  // those of earlier tests may still be ending
  while (!answer && io_.run_one_for(std::chrono::seconds(10)) > 0) {
  }
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status.error().code, Code::kUnavailable);
  EXPECT_TRUE(test::WaitUntil([&] { return Ask(connection, "SELECT 1").status.ok(); }));
}

TEST_F(PostgresConnection, GivesUpOnAServerThatDoesNotAnswer) {
  ConnectionOptions options = Options();
  options.statement_timeout = 200ms;
  options.connect_timeout = 200ms;
  Connection connection(io_, options);
  ASSERT_TRUE(Ask(connection, "SELECT 1").status.ok());
  server_->Pause();
  const Answer stuck = Ask(connection, "SELECT 1");
  Connection fresh(io_, options);
  const Answer refused = Ask(fresh, "SELECT 1");
  server_->Resume();
  ASSERT_FALSE(stuck.status.ok());
  EXPECT_EQ(stuck.status.error().code, Code::kUnavailable);
  ASSERT_FALSE(refused.status.ok());
  EXPECT_EQ(refused.status.error().code, Code::kUnavailable);
}

TEST_F(PostgresConnection, SaysSoWhenThereIsNoServer) {
  Connection connection(io_, {.url = "postgres://weir@127.0.0.1:1/none"});
  const Answer answer = Ask(connection, "SELECT 1");
  ASSERT_FALSE(answer.status.ok());
  EXPECT_EQ(answer.status.error().code, Code::kUnavailable);
}

TEST_F(PostgresConnection, MigratesOnceAndRefusesTablesOfANewerProgram) {
  const char* const both[] = {"CREATE TABLE step1(); CREATE TABLE step1b()",
                              "CREATE TABLE step2()"};
  const std::span<const char* const> steps(both);
  ASSERT_TRUE(Migrate(server_->url(), "thing", steps.first(1)).ok());
  ASSERT_TRUE(Migrate(server_->url(), "thing", steps).ok());
  const Status again = Migrate(server_->url(), "thing", steps);
  EXPECT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(server_->Query("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'step%'"), "3");
  const Status older = Migrate(server_->url(), "thing", steps.first(1));
  ASSERT_FALSE(older.ok());
  EXPECT_EQ(older.error().code, Code::kFailedPrecondition);
  const char* const broken[] = {"CREATE TABLE half(); SELECT 1/0"};
  EXPECT_FALSE(Migrate(server_->url(), "broken", broken).ok());
  EXPECT_EQ(server_->Query("SELECT count(*) FROM pg_tables WHERE tablename = 'half'"), "0");
}

TEST(PostgresServer, KeepsWhatWasCommittedThroughACrash) {
  test::PostgresServer server;
  server.Query("CREATE TABLE kept AS SELECT 7 AS n");
  server.Crash();
  server.Start();
  EXPECT_EQ(server.Query("SELECT n FROM kept"), "7");
  server.Stop();
  server.Start();
  EXPECT_EQ(server.Query("SELECT n FROM kept"), "7");
}

}  // namespace
}  // namespace weir::postgres
