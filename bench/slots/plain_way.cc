#include "plain_way.h"

#include <libpq-fe.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <thread>
#include <vector>

namespace weir::bench {
namespace {

using Handle = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

void Require(bool ok, PGconn* connection) {
  if (ok) return;
  std::fprintf(stderr, "plain way: %s\n", PQerrorMessage(connection));
  std::exit(1);
}

Handle Connect(const std::string& url) {
  Handle connection(PQconnectdb(url.c_str()), &PQfinish);
  Require(PQstatus(connection.get()) == CONNECTION_OK, connection.get());
  return connection;
}

void Run(PGconn* connection, const char* sql) {
  const Answer answer(PQexec(connection, sql), &PQclear);
  const auto status = PQresultStatus(answer.get());
  Require(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, connection);
}

Answer Ask(PGconn* connection, const char* name, std::initializer_list<const char*> values) {
  const std::vector<const char*> list(values);
  Answer answer(PQexecPrepared(connection, name, static_cast<int>(list.size()), list.data(),
                               nullptr, nullptr, 0),
                &PQclear);
  const auto status = PQresultStatus(answer.get());
  Require(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, connection);
  return answer;
}

void Prepare(PGconn* connection, const char* name, const char* sql) {
  const Answer answer(PQprepare(connection, name, sql, 0, nullptr), &PQclear);
  Require(PQresultStatus(answer.get()) == PGRES_COMMAND_OK, connection);
}

void AssignOne(PGconn* connection, const std::string& event) {
  Run(connection, "BEGIN");
  if (PQntuples(Ask(connection, "find", {event.c_str()}).get()) == 0) {
    const Answer window = Ask(connection, "lock", {});
    const char* start = PQgetvalue(window.get(), 0, 0);
    Ask(connection, "count", {start});
    Ask(connection, "insert", {event.c_str(), start});
  }
  Run(connection, "COMMIT");
}

}  // namespace

double MeasurePlainWay(const std::string& url, int connections, double seconds) {
  {
    const Handle setup = Connect(url);
    Run(setup.get(),
        "SET client_min_messages = warning; DROP TABLE IF EXISTS plain_slot, plain_window;"
        "CREATE TABLE plain_window(start bigint PRIMARY KEY, slots int NOT NULL);"
        "CREATE TABLE plain_slot(event_id text PRIMARY KEY, start bigint NOT NULL, "
        "scheduled bigint NOT NULL);"
        "INSERT INTO plain_window SELECT w * 4000, 0 FROM generate_series(0, 100000) w;"
        "CREATE INDEX ON plain_window(start) WHERE slots < 100; ANALYZE plain_window");
  }
  std::atomic<long> done{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < connections; ++t) {
    threads.emplace_back([&, t] {
      const Handle connection = Connect(url);
      Prepare(connection.get(), "find", "SELECT start FROM plain_slot WHERE event_id = $1");
      Prepare(connection.get(), "lock",
              "SELECT start FROM plain_window WHERE slots < 100 ORDER BY start LIMIT 1 "
              "FOR UPDATE SKIP LOCKED");
      Prepare(connection.get(), "count",
              "UPDATE plain_window SET slots = slots + 1 WHERE start = $1");
      Prepare(connection.get(), "insert",
              "INSERT INTO plain_slot VALUES ($1, $2::bigint, $2::bigint + 7)");
      for (int i = 0; !stop.load(); ++i) {
        AssignOne(connection.get(), "plain-" + std::to_string(t) + "-" + std::to_string(i));
        ++done;
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 4));
  const long before = done.load();
  const auto begun = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double rate =
      static_cast<double>(done.load() - before) /
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return rate;
}

}  // namespace weir::bench
