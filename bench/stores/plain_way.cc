#include "plain_way.h"

#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "drivers/mysql/connection.h"

namespace weir::bench {
namespace {

using std::chrono::steady_clock;

void Require(bool good, std::string_view what) {
  if (good) return;
  std::fprintf(stderr, "plain way: %.*s\n", static_cast<int>(what.size()), what.data());
  std::exit(1);
}

/// Runs `work(thread, stop)` on threads; it returns how many checks it made.
using Work = std::function<std::uint64_t(int thread, const std::atomic<bool>& stop)>;
double RateOf(int threads, double seconds, const Work& work) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> sum{0};
  std::vector<std::thread> all;
  const auto began = steady_clock::now();
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] { sum += work(i, stop); });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : all) thread.join();
  return static_cast<double>(sum) /
         std::chrono::duration<double>(steady_clock::now() - began).count();
}

std::int64_t NowMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// The theoretical arrival time after a check of a bucket that never runs out: 1 microsecond each.
std::int64_t NextArrival(std::int64_t arrival) { return std::max(arrival, NowMicros()) + 1; }

using Postgres = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using PostgresAnswer = std::unique_ptr<PGresult, decltype(&PQclear)>;

PostgresAnswer Ask(PGconn* connection, const char* sql, std::vector<const char*> values = {}) {
  PostgresAnswer answer(PQexecParams(connection, sql, static_cast<int>(values.size()), nullptr,
                                     values.data(), nullptr, nullptr, 0),
                        &PQclear);
  const auto status = PQresultStatus(answer.get());
  Require(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, PQerrorMessage(connection));
  return answer;
}

std::string KeyOf(std::size_t number) { return "user:" + std::to_string(number); }

/// A token bucket as a theoretical arrival time, as scripts for it usually are.
/// ARGV: capacity, microseconds per permit, cost.
constexpr const char* kScript = R"(
local capacity, each, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local at = tonumber(redis.call('GET', KEYS[1]) or now)
if at < now then at = now end
local burst = capacity * each
local next = at + cost * each
if next - now > burst then
  return {0, math.floor((burst - (at - now)) / each), next - now - burst, at - now}
end
redis.call('SET', KEYS[1], string.format('%.0f', next), 'PX', math.ceil((next - now) / 1000) + 1)
return {1, math.floor((burst - (next - now)) / each), 0, next - now}
)";

}  // namespace

double PlainPostgres(const std::string& url, int connections, std::size_t keys, double seconds) {
  const auto connect = [&url] {
    Postgres connection(PQconnectdb(url.c_str()), &PQfinish);
    Require(PQstatus(connection.get()) == CONNECTION_OK, PQerrorMessage(connection.get()));
    return connection;
  };
  const Postgres setup = connect();
  Ask(setup.get(), "SET client_min_messages = warning");
  Ask(setup.get(), "CREATE TABLE IF NOT EXISTS plain(key text PRIMARY KEY, at bigint NOT NULL)");
  const std::string count = std::to_string(keys);
  Ask(setup.get(),
      "INSERT INTO plain SELECT 'user:' || i, 0 FROM generate_series(0, $1::bigint - 1) AS i "
      "ON CONFLICT DO NOTHING",
      {count.c_str()});
  return RateOf(connections, seconds, [&](int thread, const std::atomic<bool>& stop) {
    const Postgres own = connect();
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    std::uint64_t checks = 0;
    for (; !stop; ++checks) {
      const std::string key = KeyOf(random() % keys);
      Ask(own.get(), "BEGIN");
      const auto row =
          Ask(own.get(), "SELECT at FROM plain WHERE key = $1 FOR UPDATE", {key.c_str()});
      const std::string next = std::to_string(NextArrival(std::atoll(PQgetvalue(row.get(), 0, 0))));
      Ask(own.get(), "UPDATE plain SET at = $2 WHERE key = $1", {key.c_str(), next.c_str()});
      Ask(own.get(), "COMMIT");
    }
    return checks;
  });
}

double PlainMysql(const std::string& url, int connections, std::size_t keys, double seconds) {
  const auto ask = [](mysql::Connection& connection, const std::string& sql) {
    mysql::Answer answer = connection.Run(sql);
    Require(answer.status.ok(), answer.status.ok() ? "" : answer.status.error().message);
    return answer;
  };
  mysql::ConnectionOptions options;
  options.url = url;
  options.statement_timeout = std::chrono::seconds(30);
  mysql::Connection setup(options);
  ask(setup, "CREATE TABLE IF NOT EXISTS plain(k VARCHAR(64) PRIMARY KEY, at BIGINT NOT NULL)");
  for (std::size_t first = 0; first < keys; first += 1000) {
    std::string rows = "INSERT IGNORE INTO plain VALUES ";
    for (std::size_t key = first; key < std::min(first + 1000, keys); ++key) {
      rows += (key == first ? "('" : ",('") + KeyOf(key) + "',0)";
    }
    ask(setup, rows);
  }
  return RateOf(connections, seconds, [&](int thread, const std::atomic<bool>& stop) {
    mysql::Connection own(options);
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    std::uint64_t checks = 0;
    for (; !stop; ++checks) {
      const std::string key = KeyOf(random() % keys);
      ask(own, "BEGIN");
      mysql::Answer row = ask(own, "SELECT at FROM plain WHERE k = '" + key + "' FOR UPDATE");
      Require(row.results.at(0).Next(), "no row");
      const std::string next = std::to_string(NextArrival(row.results[0].Int(0)));
      ask(own, "UPDATE plain SET at = " + next + " WHERE k = '" + key + "'");
      ask(own, "COMMIT");
    }
    return checks;
  });
}

double PlainRedis(int port, int connections, int depth, std::size_t keys, double seconds) {
  return RateOf(connections, seconds, [&](int thread, const std::atomic<bool>& stop) {
    const std::unique_ptr<redisContext, decltype(&redisFree)> own(redisConnect("127.0.0.1", port),
                                                                  &redisFree);
    Require(own != nullptr && own->err == 0, "no connection to Redis");
    auto* loaded = static_cast<redisReply*>(redisCommand(own.get(), "SCRIPT LOAD %s", kScript));
    Require(loaded != nullptr && loaded->type == REDIS_REPLY_STRING, "no script");
    const std::string sha(loaded->str, loaded->len);
    freeReplyObject(loaded);
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    std::uint64_t checks = 0;
    const auto send = [&] {
      const std::string key = KeyOf(random() % keys);
      redisAppendCommand(own.get(), "EVALSHA %s 1 %s 1000000000 1 1", sha.c_str(), key.c_str());
    };
    const auto receive = [&] {
      void* reply = nullptr;
      Require(redisGetReply(own.get(), &reply) == REDIS_OK, "no reply");
      Require(static_cast<redisReply*>(reply)->type == REDIS_REPLY_ARRAY, "a wrong reply");
      freeReplyObject(reply);
      ++checks;
    };
    for (int i = 0; i < depth; ++i) send();
    // Half of the requests in flight are read and sent again together, so that writes are shared.
    const int part = std::max(1, depth / 2);
    while (!stop) {
      for (int i = 0; i < part; ++i) receive();
      for (int i = 0; i < part; ++i) send();
    }
    for (int i = 0; i < depth; ++i) receive();
    return checks;
  });
}

}  // namespace weir::bench
