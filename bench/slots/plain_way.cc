#include "plain_way.h"

#include <libpq-fe.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
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

// How often per second all connections together run `once`.
double Rate(const std::string& url, int connections, double seconds,
            const std::function<void(PGconn*)>& prepare,
            const std::function<void(PGconn*, int thread, int i)>& once) {
  std::atomic<long> done{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < connections; ++t) {
    threads.emplace_back([&, t] {
      const Handle connection = Connect(url);
      prepare(connection.get());
      for (int i = 0; !stop.load(); ++i) {
        once(connection.get(), t, i);
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
  const auto prepare = [](PGconn* connection) {
    Prepare(connection, "find", "SELECT start FROM plain_slot WHERE event_id = $1");
    Prepare(connection, "lock",
            "SELECT start FROM plain_window WHERE slots < 100 ORDER BY start LIMIT 1 "
            "FOR UPDATE SKIP LOCKED");
    Prepare(connection, "count", "UPDATE plain_window SET slots = slots + 1 WHERE start = $1");
    Prepare(connection, "insert", "INSERT INTO plain_slot VALUES ($1, $2::bigint, $2::bigint + 7)");
  };
  return Rate(url, connections, seconds, prepare, [](PGconn* connection, int thread, int i) {
    AssignOne(connection, "plain-" + std::to_string(thread) + "-" + std::to_string(i));
  });
}

double MeasurePlainClaims(const std::string& url, int connections, double seconds) {
  {
    const Handle setup = Connect(url);
    Run(setup.get(),
        "SET client_min_messages = warning; DROP TABLE IF EXISTS plain_due;"
        "CREATE TABLE plain_due(event_id text PRIMARY KEY, scheduled bigint NOT NULL, "
        "state smallint NOT NULL DEFAULT 0, lease_until timestamptz);"
        "INSERT INTO plain_due SELECT 'run-' || i, i FROM generate_series(1, 300000) i;"
        "CREATE INDEX ON plain_due(scheduled) WHERE state = 0");
    Run(setup.get(), "VACUUM ANALYZE plain_due");
  }
  const auto prepare = [](PGconn* connection) {
    Prepare(connection, "claim",
            "UPDATE plain_due SET state = 1, lease_until = now() + interval '1 minute' "
            "WHERE event_id = (SELECT event_id FROM plain_due WHERE state = 0 "
            "ORDER BY scheduled LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING event_id");
    Prepare(connection, "done",
            "UPDATE plain_due SET state = 2, lease_until = NULL "
            "WHERE event_id = $1 AND state = 1");
  };
  return Rate(url, connections, seconds, prepare, [](PGconn* connection, int, int) {
    const Answer claimed = Ask(connection, "claim", {});
    if (PQntuples(claimed.get()) != 1) {
      std::fprintf(stderr, "plain way: nothing is left to claim\n");
      std::exit(1);
    }
    Ask(connection, "done", {PQgetvalue(claimed.get(), 0, 0)});
  });
}

}  // namespace weir::bench
