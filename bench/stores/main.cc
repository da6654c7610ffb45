// ./dev bench stores: checks per second and added latency of each remote store, beside the plain
// way on the same server, in one run. The servers are started for this run, with durable commits.
// Prints `figure` lines. An argument names one store: redis, cluster, postgres, mariadb or
// mysql; or "sparse", the part of redis where checks arrive one by one, or "gather", the part of
// that in which they may wait for others.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cluster.h"
#include "gather.h"
#include "http_load.h"
#include "plain_way.h"
#include "sparse.h"
#include "store/mysql/pool.h"
#include "store/postgres/pool.h"
#include "store/redis/redis_store.h"
#include "store_load.h"
#include "support/mariadb_server.h"
#include "support/mysql_server.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::bench {
namespace {

constexpr std::size_t kHot = 1;
constexpr std::size_t kSpread = 100'000;
constexpr double kSeconds = 3;
constexpr double kPlainSeconds = 1.5;

void Figure(const std::string& name, double value, const char* unit) {
  std::printf("figure store.%s %.*f %s\n", name.c_str(), value < 100 ? 2 : 0, value, unit);
  std::fflush(stdout);
}

/// `plain(connections, keys)` returns the plain way's rate.
template <typename Plain>
double BestPlain(const Plain& plain, std::size_t keys) {
  double best = 0;
  for (const int connections : {4, 16}) best = std::max(best, plain(connections, keys));
  return best;
}

template <typename Plain>
void Measure(const std::string& name, const MakeStore& make, const Plain& plain) {
  // Measured first: a mass of keys that expire later would stall Redis now and then.
  const Latency latency = MeasureLatency(make, kSeconds);
  Figure(name + ".latency.p50", latency.p50_ms, "ms");
  Figure(name + ".latency.p99", latency.p99_ms, "ms");
  for (const auto& [kind, keys] : {std::pair{".hot", kHot}, std::pair{".spread", kSpread}}) {
    const double usual = BestPlain(plain, keys);
    const double ours = MeasureRate(make, keys, kSeconds);
    Figure(name + kind + ".plain_rps", usual, "checks/s");
    Figure(name + kind + ".rps", ours, "checks/s");
    Figure(name + kind + ".ratio_to_plain", ours / usual, "x");
  }
}

/// Seconds of CPU that the server has used so far.
double CpuOf(const test::RedisServer& server) {
  const std::string info = server.Command({"INFO", "cpu"});
  double sum = 0;
  for (const std::string_view name : {"used_cpu_sys:", "used_cpu_user:"}) {
    sum += std::atof(info.c_str() + info.find(name) + name.size());
  }
  return sum;
}

/// The store beside one script call per check with as many calls in flight as suit it best. The
/// server limits both, so its CPU time per check is printed as well.
void MeasureRedisPipelined(const test::RedisServer& server, const MakeStore& make) {
  struct Side {
    double rate = 0;
    double cpu_us = 0;
  };
  const auto best = [&server](Side& side, const auto& measure) {
    const auto began = std::chrono::steady_clock::now();
    const double before = CpuOf(server);
    const double rate = measure();
    const double used = CpuOf(server) - before;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    if (rate > side.rate) side = {rate, used / took.count() / rate * 1e6};
  };
  Side pipelined;
  Side ours;
  for (int round = 0; round < 2; ++round) {
    for (const int depth : {64, 512}) {
      best(pipelined, [&] { return PlainRedis(server.port(), 1, depth, kSpread, kPlainSeconds); });
    }
    best(ours, [&] { return MeasureRate(make, kSpread, kPlainSeconds); });
  }
  Figure("redis.spread.pipelined_rps", pipelined.rate, "checks/s");
  Figure("redis.spread.ratio_to_pipelined", ours.rate / pipelined.rate, "x");
  Figure("redis.spread.cpu_us", ours.cpu_us, "us");
  Figure("redis.spread.pipelined_cpu_us", pipelined.cpu_us, "us");
}

MakeStore OnRedis(const test::RedisServer& server, const std::string& with = "") {
  return [&server, with](boost::asio::io_context& io) {
    store::redis::Options options;
    options.url = server.url() + with;
    options.command_timeout = std::chrono::seconds(5);
    return std::move(*store::redis::MakeStore(io, std::move(options)));
  };
}

void MeasureRedisSparse() {
  const test::RedisServer server;
  MeasureSparse(server.port(), OnRedis(server), Figure);
}

void MeasureRedisGather() {
  const test::RedisServer server;
  MeasureGather(server.port(), OnRedis(server),
                {{"1ms", OnRedis(server, "?gather=1ms")}, {"3ms", OnRedis(server, "?gather=3ms")}},
                Figure);
}

void MeasureRedis() {
  const test::RedisServer server;
  const MakeStore make = OnRedis(server);
  const int port = server.port();
  Measure("redis", make, [port](int connections, std::size_t keys) {
    return PlainRedis(port, connections, 1, keys, kPlainSeconds);
  });
  MeasureRedisPipelined(server, make);
}

template <typename OpenPool>
MakeStore PoolOf(OpenPool open, const std::string& url) {
  store::sql::PoolOptions options;
  options.url = url;
  options.timeout = std::chrono::seconds(5);
  auto pool = open(std::move(options));
  if (!pool.ok()) {
    std::fprintf(stderr, "%s\n", pool.error().message.c_str());
    std::exit(1);
  }
  return [pool = *pool](boost::asio::io_context& io) { return pool->MakeStore(io); };
}

/// End to end: `weir serve` with that store, and HTTP clients.
void MeasureHttpOn(const std::string& name, const std::string& url) {
  constexpr int kClients = 256;
  const test::TempDir data;
  test::WeirProcess weir({"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off",
                          "--store", url, "--store-timeout", "5s", "--policy-store",
                          "sqlite:", "--data", data.path().string()});
  const std::uint16_t port = weir.Port("http");
  Figure(name + ".http.hot.rps", MeasureHttp(port, kClients, kHot, kSeconds), "checks/s");
  Figure(name + ".http.spread.rps", MeasureHttp(port, kClients, kSpread, kSeconds), "checks/s");
}

void MeasurePostgres() {
  const test::PostgresServer server;
  const std::string url = server.url();
  Measure("postgres", PoolOf(store::postgres::OpenPool, url),
          [&url](int connections, std::size_t keys) {
            return PlainPostgres(url, connections, keys, kPlainSeconds);
          });
  MeasureHttpOn("postgres", url);
}

template <typename Server>
void MeasureMysqlFamily(const std::string& name) {
  const Server server;
  const std::string url = server.url();
  Measure(name, PoolOf(store::mysql::OpenPool, url), [&url](int connections, std::size_t keys) {
    return PlainMysql(url, connections, keys, kPlainSeconds);
  });
  MeasureHttpOn(name, url);
}

void MeasureMysql() {
  if (test::MysqlServer::Absence().empty()) return MeasureMysqlFamily<test::MysqlServer>("mysql");
  std::fprintf(stderr, "%s\n", test::MysqlServer::Absence().c_str());
}

int Run(const std::string& only) {
  if (only.empty() || only == "redis") MeasureRedis();
  if (only.empty() || only == "redis" || only == "sparse") MeasureRedisSparse();
  if (only.empty() || only == "redis" || only == "sparse" || only == "gather") MeasureRedisGather();
  if (only.empty() || only == "cluster") MeasureCluster(Figure);
  if (only.empty() || only == "postgres") MeasurePostgres();
  if (only.empty() || only == "mariadb") MeasureMysqlFamily<test::MariadbServer>("mariadb");
  if (only.empty() || only == "mysql") MeasureMysql();
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::Run(argc > 1 ? argv[1] : ""); }
