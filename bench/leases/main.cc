// ./dev bench leases: what a leased policy costs compared with an exact one, the memory store and
// its targets, in one run. Real servers for speed; the simulation for what only many nodes show.
// Prints `figure` lines, and `mark` lines for those with a target. Arguments name stores: redis,
// postgres, mariadb, mysql; default: all of them.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "figures.h"
#include "node_load.h"
#include "store/mysql/pool.h"
#include "store/postgres/pool.h"
#include "store/redis/redis_store.h"
#include "support/mariadb_server.h"
#include "support/mysql_server.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"

namespace weir::bench {
namespace {

struct Aim {
  std::string_view name;
  bool least;
  double value;
};
// The specified targets of leases. Under-admission of the log and the counter: T/(W+T) + 2 %.
constexpr Aim kAims[] = {{"redis.leased_to_exact", true, 5},
                         {"postgres.leased_to_exact", true, 100},
                         {"mariadb.leased_to_exact", true, 100},
                         {"mysql.leased_to_exact", true, 100},
                         {"simulated.bucket.under_admission", false, 2},
                         {"simulated.fixed.under_admission", false, 2},
                         {"simulated.log.under_admission", false, 6.77},
                         {"simulated.counter.under_admission", false, 6.77},
                         {"simulated.bucket.calls_per_admitted", false, 0.01},
                         {"simulated.fixed.calls_per_admitted", false, 0.01},
                         {"simulated.log.calls_per_admitted", false, 0.01},
                         {"simulated.counter.calls_per_admitted", false, 0.01},
                         {"simulated.bucket_32_nodes.jain", true, 0.95}};
// The same targets for every store.
constexpr Aim kStoreAims[] = {{"leased_to_memory", true, 0.7},
                              {"hot_added_p50", false, 1},
                              {"hot_added_p999", false, 20},
                              {"cold_leased_to_exact", false, 1.2},
                              {"calls_per_check_at_1000", false, 0.01},
                              {"leases_held_at_most", false, 2}};

void Judge(const Aim& aim, const std::string& name, double value) {
  const bool reached = aim.least ? value >= aim.value : value <= aim.value;
  std::printf("mark %s: leases.%s is %.4g, %s %g\n", reached ? "reached" : "MISSED", name.c_str(),
              value, aim.least ? "at least" : "at most", aim.value);
}

void Tell(const std::string& name, double value, const char* unit) {
  std::printf("figure leases.%s %.*f %s\n", name.c_str(), value < 100 ? 4 : 0, value, unit);
  for (const Aim& aim : kAims) {
    if (name == aim.name) Judge(aim, name, value);
  }
  const std::string of_any = name.substr(name.find('.') + 1);
  for (const Aim& aim : kStoreAims) {
    if (of_any == aim.name) Judge(aim, name, value);
  }
  std::fflush(stdout);
}

void MeasureStore(const std::string& name, const MakeInner& make) {
  const double exact = HotRate(make, Kind::kExact);
  const double leased = HotRate(make, Kind::kLeased);
  const double memory = HotRate(make, Kind::kMemory);
  Tell(name + ".exact_rps", exact, "checks/s");
  Tell(name + ".leased_rps", leased, "checks/s");
  Tell(name + ".leased_to_exact", leased / exact, "x");
  Tell(name + ".leased_to_memory", leased / memory, "x");
  const Added hot = HotAdded(make);
  Tell(name + ".hot_added_p50", hot.p50_us, "us");
  Tell(name + ".hot_added_p999", hot.p999_us, "us");
  Tell(name + ".cold_leased_to_exact", ColdRatio(make), "x");
  const Paced paced = AtOneThousand(make);
  Tell(name + ".calls_per_check_at_1000", paced.calls_per_check, "calls");
  Tell(name + ".leases_held_at_most", paced.leases_held, "leases");
}

template <typename OpenPool>
MakeInner PoolOf(OpenPool open, const std::string& url) {
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

void MeasureRedis() {
  const test::RedisServer server;
  MeasureStore("redis", [&server](boost::asio::io_context& io) {
    store::redis::Options options;
    options.url = server.url();
    options.command_timeout = std::chrono::seconds(5);
    return std::move(*store::redis::MakeStore(io, options));
  });
}

template <typename Server, typename OpenPool>
void MeasureSql(const std::string& name, OpenPool open) {
  const Server server;
  MeasureStore(name, PoolOf(open, server.url()));
}

int Run(const std::vector<std::string>& only) {
  const auto wanted = [&only](const char* name) {
    return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
  };
  const bool held =
      simulation::MeasureFigures([](const std::string& name, double value, const char* unit) {
        Tell("simulated." + name, value, unit);
      });
  if (wanted("redis")) MeasureRedis();
  if (wanted("postgres")) {
    MeasureSql<test::PostgresServer>("postgres", store::postgres::OpenPool);
  }
  if (wanted("mariadb")) MeasureSql<test::MariadbServer>("mariadb", store::mysql::OpenPool);
  if (wanted("mysql") && test::MysqlServer::Absence().empty()) {
    MeasureSql<test::MysqlServer>("mysql", store::mysql::OpenPool);
  }
  return held ? 0 : 1;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  return weir::bench::Run(std::vector<std::string>(argv + 1, argv + argc));
}
