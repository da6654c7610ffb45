#include "figures.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "algorithm/lease.h"
#include "scenario.h"
#include "world.h"

namespace weir::simulation {
namespace {

constexpr Nanos kLength = 10'000'000'000;
constexpr double kSeconds = 10;

/// 1 if all got the same fraction of their demand, 1/n if one got everything.
double Jain(const Scenario& scenario, const std::vector<std::uint64_t>& shares) {
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double part = static_cast<double>(shares[i]) / WeightOf(scenario, i);
    sum += part;
    squares += part * part;
  }
  return squares == 0 ? 1 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

Scenario Uneven(Scenario scenario) {
  scenario.uneven = true;
  return scenario;
}

Scenario Shared(Scenario scenario) {
  scenario.share_term = std::chrono::nanoseconds(algorithm::kShareTerm).count();
  return scenario;
}

/// 4 nodes at about 1,000 checks a second each, whose clients would have 200 permits in flight:
/// each releases its own after 50 ms on average, half of them at another node.
Scenario Permits(std::int64_t limit) {
  using namespace std::chrono_literals;
  Scenario scenario = Steady(*Quota::Concurrency(limit, 10s), 4, 1, kLength);
  scenario.steady_gap = 1'000'000;
  scenario.most_hold = 100'000'000;
  return scenario;
}

/// What the result is compared with.
enum class Against : std::uint8_t { kNothing, kExact };

bool Measure(const Tell& tell, const std::string& name, const Scenario& scenario,
             Against against = Against::kExact) {
  const Outcome leased = World(scenario).Run();
  const auto allowed = static_cast<double>(leased.allowed);
  const auto calls = static_cast<double>(leased.calls);
  if (against == Against::kExact) {
    Scenario every_check = scenario;
    every_check.exact = true;
    const auto exact = static_cast<double>(World(every_check).Run().allowed);
    tell(name + ".under_admission", 100 * (1 - allowed / exact), "%");
    tell(name + ".calls_per_admitted", calls / allowed, "calls");
    tell(name + ".calls_per_node", calls / static_cast<double>(scenario.nodes) / kSeconds, "1/s");
  }
  tell(name + ".jain", Jain(scenario, leased.shares), "index");
  if (leased.violation) std::printf("VIOLATION: %s\n", leased.violation->c_str());
  return !leased.violation;
}

/// 32 nodes that together want twice what there is: `each` permits per second per node.
bool MeasureMany(const Tell& tell, std::int64_t each, Against against) {
  using namespace std::chrono_literals;
  constexpr std::size_t kNodes = 32;
  const std::int64_t rate = kNodes * each;
  const Quota bucket = *Quota::TokenBucket(rate * 10, rate);
  const Quota second = *Quota::TokenBucket(rate, rate);
  const auto steady = [](const Quota& quota, double demand) {
    return Steady(quota, kNodes, demand, kLength);
  };
  bool good = true;
  const auto measure = [&](const std::string& name, const Scenario& scenario) {
    good &= Measure(tell, name, scenario, against);
  };
  measure("bucket_32_nodes", steady(bucket, 2));
  measure("bucket_32_uneven", Uneven(steady(bucket, 2)));
  measure("fixed_32_nodes", steady(*Quota::FixedWindow(rate, 1s), 2));
  measure("log_32_uneven", Uneven(steady(*Quota::SlidingLog(rate, 1s), 2)));
  measure("second_32_nodes", steady(second, 2));
  measure("shared_32_nodes", Shared(steady(second, 2)));
  measure("shared_32_uneven", Shared(Uneven(steady(second, 2))));
  measure("shared_32_with_room", Shared(steady(second, 0.8)));
  return good;
}

}  // namespace

bool MeasureFigures(const Tell& tell) {
  using namespace std::chrono_literals;
  const std::int64_t second = 4000;  // 4 nodes at about 1,000 checks a second each
  bool good = true;
  const auto steady = [&](const std::string& name, const Quota& quota, std::size_t nodes,
                          double demand) {
    good &= Measure(tell, name, Steady(quota, nodes, demand, kLength));
  };
  steady("bucket", *Quota::TokenBucket(second * 5, second), 4, 1.2);
  steady("fixed", *Quota::FixedWindow(second * 10, 10s), 4, 1.2);
  steady("log", *Quota::SlidingLog(second * 5, 5s), 4, 1.2);
  steady("counter", *Quota::SlidingCounter(second * 5, 5s, 10), 4, 1.2);
  steady("bucket_with_room", *Quota::TokenBucket(second * 10, second), 4, 0.8);
  good &= Measure(tell, "permits_with_room", Permits(400));
  good &= Measure(tell, "permits_short", Permits(167));
  return MeasureMany(tell, 500, Against::kExact) && good;
}

bool MeasureFairness(const Tell& tell) {
  constexpr double kFair = 0.95;
  bool fair = true;
  const auto judge = [&](const std::string& name, double value, const char* unit) {
    tell(name, value, unit);
    fair &= value >= kFair;
  };
  return MeasureMany(judge, 100, Against::kNothing) && fair;
}

}  // namespace weir::simulation
