#include "cluster.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/key_spread.h"
#include "store/redis/redis_store.h"
#include "store_load.h"
#include "support/redis_cluster.h"

namespace weir::bench {
namespace {

constexpr std::size_t kKeys = 100'000;
constexpr double kSeconds = 3;
using PerMaster = std::array<double, test::RedisCluster::kMasters>;

/// Seconds of CPU that each master has used so far.
PerMaster CpuOf(test::RedisCluster& cluster) {
  PerMaster used{};
  for (std::size_t i = 0; i < used.size(); ++i) {
    const std::string info = cluster.node(i).Command({"INFO", "cpu"});
    for (const std::string_view name : {"used_cpu_sys:", "used_cpu_user:"}) {
      used[i] += std::atof(info.c_str() + info.find(name) + name.size());
    }
  }
  return used;
}

struct Side {
  double rate = 0;
  double busiest_us = 0;  // CPU time for a check, of the master that uses most
  double all_us = 0;
};

Side MeasureSide(test::RedisCluster& cluster, std::shared_ptr<const KeySpread> spread) {
  const MakeStore make = [&](boost::asio::io_context& io) {
    store::redis::Options options;
    options.url = cluster.url();
    options.command_timeout = std::chrono::seconds(5);
    options.spread = spread;
    return std::move(*store::redis::MakeStore(io, options));
  };
  const PerMaster before = CpuOf(cluster);
  const auto began = std::chrono::steady_clock::now();
  Side side;
  side.rate = MeasureRate(make, kKeys, kSeconds);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const PerMaster after = CpuOf(cluster);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double us = (after[i] - before[i]) / took.count() / side.rate * 1e6;
    side.busiest_us = std::max(side.busiest_us, us);
    side.all_us += us;
  }
  return side;
}

}  // namespace

void MeasureCluster(const TellFigure& tell) {
  test::RedisCluster cluster({.replicas = false});
  const auto spread = std::make_shared<KeySpread>();
  spread->Publish({});
  const Side one = MeasureSide(cluster, nullptr);
  const Side three = MeasureSide(cluster, spread);
  tell("cluster.one_master.rps", one.rate, "checks/s");
  tell("cluster.one_master.busiest_cpu_us", one.busiest_us, "us");
  tell("cluster.three_masters.rps", three.rate, "checks/s");
  tell("cluster.three_masters.busiest_cpu_us", three.busiest_us, "us");
  tell("cluster.three_masters.all_cpu_us", three.all_us, "us");
  tell("cluster.three_masters.busiest_share", three.busiest_us / three.all_us, "part");
  tell("cluster.growth", one.busiest_us / three.busiest_us, "x");
}

}  // namespace weir::bench
