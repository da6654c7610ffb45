#include "gather.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plain_redis.h"

namespace weir::bench {
namespace {

using std::chrono::steady_clock;
using Times = std::vector<steady_clock::time_point>;

constexpr std::size_t kKeys = 10'000;
constexpr int kTurns = 15;
constexpr double kTurnSeconds = 0.25;

double MicrosSince(steady_clock::time_point time) {
  return std::chrono::duration<double, std::micro>(steady_clock::now() - time).count();
}

/// The times at which checks arrive in a turn that starts now.
Times Arrivals(int rate, std::minstd_rand& random) {
  std::exponential_distribution<double> gap(rate);
  Times times;
  auto due = steady_clock::now();
  for (std::size_t left = static_cast<std::size_t>(rate * kTurnSeconds); left > 0; --left) {
    due += std::chrono::duration_cast<steady_clock::duration>(
        std::chrono::duration<double>(gap(random)));
    times.push_back(due);
  }
  return times;
}

std::string KeyOf(std::minstd_rand& random) {
  return "bench/per-user|user:" + std::to_string(random() % kKeys);
}

/// Makes a check at each of these times; returns the latency of each in microseconds.
using RunTurn = std::function<std::vector<double>(const Times&, std::minstd_rand&)>;

RunTurn Plainly(const RedisCheck& check) {
  return [check](const Times& times, std::minstd_rand& random) {
    std::vector<double> latencies;
    for (const auto due : times) {
      std::this_thread::sleep_until(due);
      check(KeyOf(random));
      latencies.push_back(MicrosSince(due));
    }
    return latencies;
  };
}

/// Through a store, under one quota.
class OurTurns {
 public:
  OurTurns(const MakeStore& make, const Quota& quota) : store_(make(io_)), quota_(quota) {}

  std::vector<double> operator()(const Times& times, std::minstd_rand& random) {
    std::vector<double> latencies;
    std::deque<Asked> asked;
    for (const auto due : times) {
      Await(due);
      Asked& one = asked.emplace_back();
      one.key = KeyOf(random);
      one.charge = {one.key, 1, &quota_};
      one.application.charges = {&one.charge, 1};
      one.application.decisions = {&one.decision, 1};
      store_->Apply({&one.application, 1},
                    [&latencies, due] { latencies.push_back(MicrosSince(due)); });
    }
    while (latencies.size() < times.size()) {
      io_.restart();
      io_.run_one();
    }
    for (const Asked& one : asked) {
      RequireThat(one.application.status.ok() && one.application.applied, "a check failed");
    }
    return latencies;
  }

 private:
  struct Asked {
    std::string key;
    store::Charge charge;
    Decision decision;
    store::Application application;
  };

  /// Runs the reactor until `due`.
  void Await(steady_clock::time_point due) {
    boost::asio::steady_timer timer(io_, due);
    bool rung = false;
    timer.async_wait([&rung](const boost::system::error_code&) { rung = true; });
    while (!rung) {
      io_.restart();
      io_.run_one();
    }
  }

  boost::asio::io_context io_{1};
  std::unique_ptr<store::Store> store_;
  const Quota quota_;
};

struct Way {
  std::string name;
  RunTurn run;
  std::vector<double> cpu = {};  // microseconds per check, for each turn
  std::vector<double> latencies = {};
};

double At(std::vector<double> all, double part) {
  std::sort(all.begin(), all.end());
  return all[static_cast<std::size_t>(static_cast<double>(all.size() - 1) * part)];
}

void TakeTurn(Way& way, const std::string& pid, int rate, std::minstd_rand& random) {
  const double before = CpuOf(pid);
  const std::vector<double> latencies = way.run(Arrivals(rate, random), random);
  way.cpu.push_back((CpuOf(pid) - before) / 1000 / static_cast<double>(latencies.size()));
  way.latencies.insert(way.latencies.end(), latencies.begin(), latencies.end());
}

void Tell(const std::string& head, const Way& way, const Way& plain, const TellFigure& tell) {
  const double cpu = At(way.cpu, 0.5);
  tell(head + way.name + ".cpu_us", cpu, "us");
  if (&way != &plain) tell(head + way.name + ".ratio", cpu / At(plain.cpu, 0.5), "x");
  tell(head + way.name + ".p50", At(way.latencies, 0.5), "us");
  tell(head + way.name + ".p99", At(way.latencies, 0.99), "us");
}

}  // namespace

void MeasureGather(int port, const MakeStore& make,
                   const std::map<std::string, MakeStore>& gathering, const TellFigure& tell) {
  const RedisContext context = ConnectPlainly(port);
  const std::string pid = PidOf(*context);
  using std::chrono::seconds;
  constexpr std::int64_t kMany = 1'000'000'000;
  const std::pair<const char*, Quota> quotas[] = {
      {"token_bucket", *Quota::TokenBucket(kMany, kMany, seconds(60))},
      {"fixed_window", *Quota::FixedWindow(kMany, seconds(60))},
      {"sliding_counter", *Quota::SlidingCounter(kMany, seconds(60), 10)}};
  OurTurns at_once(make, quotas[0].second);
  std::map<std::string, OurTurns> gathered;
  for (const auto& [time, make_gathering] : gathering) {
    for (const auto& [name, quota] : quotas) {
      gathered.try_emplace(name + ("." + time), make_gathering, quota);
    }
  }
  for (const int rate : {1000, 3000, 5000}) {
    std::vector<Way> ways;
    ways.push_back({"incrby_pexpire", Plainly(Incrby(*context))});
    ways.push_back({"token_bucket.at_once", std::ref(at_once)});
    for (auto& [name, turns] : gathered) ways.push_back({name, std::ref(turns)});
    std::minstd_rand random(1);
    for (int turn = 0; turn < kTurns; ++turn) {
      for (Way& way : ways) TakeTurn(way, pid, rate, random);
    }
    const std::string head = "redis.gather" + std::to_string(rate) + ".";
    for (const Way& way : ways) Tell(head, way, ways.front(), tell);
  }
}

}  // namespace weir::bench
