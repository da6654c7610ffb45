#include "figures.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "scenario.h"
#include "world.h"

namespace weir::simulation {
namespace {

/// 1 if all are equal, 1/n if one has everything.
double Jain(const std::vector<std::uint64_t>& shares) {
  double sum = 0;
  double squares = 0;
  for (const std::uint64_t share : shares) {
    sum += static_cast<double>(share);
    squares += static_cast<double>(share) * static_cast<double>(share);
  }
  return squares == 0 ? 1 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

bool Measure(const Tell& tell, const std::string& name, const Quota& quota, std::size_t nodes,
             double demand) {
  constexpr Nanos kLength = 10'000'000'000;
  const Outcome leased = World(Steady(quota, nodes, demand, kLength)).Run();
  const Outcome exact = World(Steady(quota, nodes, demand, kLength, true)).Run();
  const auto allowed = static_cast<double>(leased.allowed);
  tell(name + ".under_admission", 100 * (1 - allowed / static_cast<double>(exact.allowed)), "%");
  tell(name + ".calls_per_admitted", static_cast<double>(leased.calls) / allowed, "calls");
  tell(name + ".jain", Jain(leased.shares), "index");
  if (leased.violation) std::printf("VIOLATION: %s\n", leased.violation->c_str());
  return !leased.violation;
}

}  // namespace

bool MeasureFigures(const Tell& tell) {
  using namespace std::chrono_literals;
  const std::int64_t second = 4000;  // 4 nodes at about 1,000 checks a second each
  bool good = true;
  good &= Measure(tell, "bucket", *Quota::TokenBucket(second * 5, second), 4, 1.2);
  good &= Measure(tell, "fixed", *Quota::FixedWindow(second * 10, 10s), 4, 1.2);
  good &= Measure(tell, "log", *Quota::SlidingLog(second * 5, 5s), 4, 1.2);
  good &= Measure(tell, "counter", *Quota::SlidingCounter(second * 5, 5s, 10), 4, 1.2);
  good &= Measure(tell, "bucket_with_room", *Quota::TokenBucket(second * 10, second), 4, 0.8);
  good &= Measure(tell, "bucket_32_nodes", *Quota::TokenBucket(32 * 5000, 32 * 500), 32, 2);
  return good;
}

}  // namespace weir::simulation
