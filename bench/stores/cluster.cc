#include "cluster.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/key_spread.h"
#include "store/redis/redis_store.h"
#include "store_load.h"
#include "support/redis_cluster.h"

namespace weir::bench {
namespace {

constexpr std::size_t kKeys = 100'000;
constexpr double kSeconds = 2;
constexpr int kRounds = 5;

/// What a master has used so far.
struct Used {
  double cpu_s = 0;
  double calls = 0;  // script calls
};

double NumberAfter(const std::string& text, std::string_view name) {
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::atof(text.c_str() + at + name.size());
}

std::vector<Used> UsedBy(test::RedisCluster& cluster) {
  std::vector<Used> used(cluster.size());
  for (std::size_t i = 0; i < used.size(); ++i) {
    const std::string cpu = cluster.node(i).Command({"INFO", "cpu"});
    used[i].cpu_s = NumberAfter(cpu, "used_cpu_sys:") + NumberAfter(cpu, "used_cpu_user:");
    const std::string stats = cluster.node(i).Command({"INFO", "commandstats"});
    used[i].calls = NumberAfter(stats, "cmdstat_evalsha:calls=");
  }
  return used;
}

struct Figures {
  double rate = 0;
  double busiest_us = 0;  // CPU time per check, of the busiest master
  double all_us = 0;
  double checks_per_call = 0;
};

/// One way to place keys, and the results of its rounds.
struct Side {
  std::string name;
  test::RedisCluster& cluster;
  std::shared_ptr<const KeySpread> spread;
  std::vector<Figures> rounds = {};

  double Median(double Figures::*figure) const {
    std::vector<double> values;
    for (const Figures& round : rounds) values.push_back(round.*figure);
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }
};

Figures MeasureOnce(const Side& side) {
  const MakeStore make = [&](boost::asio::io_context& io) {
    store::redis::Options options;
    options.url = side.cluster.url();
    options.command_timeout = std::chrono::seconds(5);
    options.spread = side.spread;
    return std::move(*store::redis::MakeStore(io, options));
  };
  const std::vector<Used> before = UsedBy(side.cluster);
  const auto began = std::chrono::steady_clock::now();
  Figures figures;
  figures.rate = MeasureRate(make, kKeys, kSeconds);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const std::vector<Used> after = UsedBy(side.cluster);
  const double checks = figures.rate * took.count();
  double calls = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double us = (after[i].cpu_s - before[i].cpu_s) / checks * 1e6;
    figures.busiest_us = std::max(figures.busiest_us, us);
    figures.all_us += us;
    calls += after[i].calls - before[i].calls;
  }
  figures.checks_per_call = checks / calls;
  return figures;
}

}  // namespace

void MeasureCluster(const TellFigure& tell) {
  test::RedisCluster small({.masters = 1, .replicas = false});
  test::RedisCluster large({.masters = 3, .replicas = false});
  const auto spread = std::make_shared<KeySpread>();
  spread->Publish({});
  std::vector<Side> sides;
  sides.push_back({"one_master", small, spread});
  sides.push_back({"three_masters", large, spread});
  sides.push_back({"one_slot", large, nullptr});
  // Alternating, so that other load on the machine affects all of them.
  for (int round = 0; round < kRounds; ++round) {
    for (Side& side : sides) side.rounds.push_back(MeasureOnce(side));
  }
  for (const Side& side : sides) {
    const std::string head = "cluster." + side.name + ".";
    tell(head + "rps", side.Median(&Figures::rate), "checks/s");
    tell(head + "busiest_cpu_us", side.Median(&Figures::busiest_us), "us");
    tell(head + "all_cpu_us", side.Median(&Figures::all_us), "us");
    tell(head + "checks_per_call", side.Median(&Figures::checks_per_call), "checks");
  }
  const auto growth = [&](std::size_t from, std::size_t to, double Figures::*figure) {
    return sides[from].Median(figure) / sides[to].Median(figure);
  };
  tell("cluster.growth", growth(0, 1, &Figures::busiest_us), "x");
  tell("cluster.growth_by_rate", growth(1, 0, &Figures::rate), "x");
  tell("cluster.growth_from_one_slot", growth(2, 1, &Figures::busiest_us), "x");
}

}  // namespace weir::bench
