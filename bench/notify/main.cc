// ./dev bench notify [PATH…]: how many notifications per second are limited, confirmed and answered
// over HTTP, on each of the three paths (postgres, redis, embedded) and in the plain way, in one
// run. Prints `figure` lines. All servers are started for this run on this machine, fsync on.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "load.h"
#include "plain_way.h"
#include "support/kafka_server.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::bench {
namespace {

constexpr double kPlainSeconds = 4;

void Figure(const std::string& name, double value, const char* unit) {
  std::printf("figure notify.%s %.*f %s\n", name.c_str(), value < 100 ? 2 : 0, value, unit);
  std::fflush(stdout);
}

/// The service on one path, as seen by its clients.
void Measure(const std::string& path, const std::vector<std::string>& options, double plain) {
  const test::TempDir dir;
  std::vector<std::string> args = {"serve",  "--http", "127.0.0.1:0", "--grpc",    "off",
                                   "--resp", "off",    "--data",      dir / "data"};
  args.insert(args.end(), options.begin(), options.end());
  test::WeirProcess weir(args);
  Load load{.port = weir.Port("http")};
  ConfigureUsers(load.port, load.users);
  load.seconds = 2;
  static_cast<void>(Run(load));
  load.seconds = 6;
  const LoadResult full = Run(load);
  load.per_second = full.sends_per_s / 2;
  const LoadResult half = Run(load);
  Figure(path + ".sends_per_s", full.sends_per_s, "sends/s");
  Figure(path + ".plain.sends_per_s", plain, "sends/s");
  Figure(path + ".ratio_to_plain", full.sends_per_s / plain, "x");
  Figure(path + ".full_p99_ms", full.p99_ms, "ms");
  Figure(path + ".p50_ms", half.p50_ms, "ms");
  Figure(path + ".p99_ms", half.p99_ms, "ms");
  Figure(path + ".failed", static_cast<double>(full.failed + half.failed), "sends");
}

bool Wanted(const std::vector<std::string>& paths, const char* path) {
  return paths.empty() || std::find(paths.begin(), paths.end(), path) != paths.end();
}

int MeasureAll(const std::vector<std::string>& paths) {
  if (Wanted(paths, "embedded")) {
    const test::TempDir dir;
    Measure("embedded", {}, PlainSqlite(dir / "plain.db", kPlainSeconds));
  }
  if (!Wanted(paths, "postgres") && !Wanted(paths, "redis")) return 0;
  test::KafkaServer kafka;
  if (Wanted(paths, "postgres")) {
    test::PostgresServer postgres;
    const double plain = PlainPostgres(postgres.url(), kafka.address(), kPlainSeconds);
    Measure("postgres", {"--notify-store", postgres.url(), "--notify-broker", kafka.url()}, plain);
  }
  if (Wanted(paths, "redis")) {
    test::PostgresServer postgres;
    const test::RedisServer redis;
    const double plain = PlainRedis(postgres.url(), redis.port(), kafka.address(), kPlainSeconds);
    Measure("redis",
            {"--notify-store", postgres.url(), "--notify-cache", redis.url(), "--notify-broker",
             kafka.url()},
            plain);
  }
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::MeasureAll({argv + 1, argv + argc}); }
