// The demand of clients on the nodes of a World, and on its regions.

#include <algorithm>
#include <cstdint>

#include "world.h"
#include "world_node.h"

namespace weir::simulation {

void World::PlanRegionDemand(Region& region) {
  events_.At(events_.now() + Draw(0, scenario_.most_gap), [this, &region] {
    const bool runs = region.pulse().Due(events_.now()) == events_.now();
    for (std::int64_t i = Draw(1, scenario_.most_burst); runs && i > 0; --i) {
      const std::int64_t cost = Draw(1, scenario_.most_cost);
      region.Check(cost, [this, &region, cost] { PlanRegionRefund(region, cost); });
    }
    PlanRegionDemand(region);
  });
}

void World::PlanRegionRefund(Region& region, std::int64_t cost) {
  if (scenario_.refund_percent == 0 || Draw(1, 100) > scenario_.refund_percent) return;
  const Nanos term = scenario_.quota.window().count() / 20;
  events_.At(region.pulse().Due(events_.now() + Draw(0, 2 * term)), [this, &region, cost] {
    if (region.pulse().Due(events_.now()) != events_.now()) return;
    if (const std::int64_t back = region.Refund(cost); back > 0) Admit("/hot|", -back, 0);
  });
}

void World::PlanDemand(Node& node) {
  if (scenario_.steady_gap != 0) return PlanSteady(node);
  if (!scenario_.prelude) return PlanBurst(node);
  const Nanos term = scenario_.quota.window().count() / 20;
  const Nanos silence = Draw(term / 20, term);
  const bool trickles = Draw(0, 1) == 0;
  Nanos time = Draw(0, scenario_.prelude_cost > 1 ? term / 2 : term / 20);
  for (std::int64_t i = Draw(8, 14); i > 0; --i) {
    CheckAt(node, time += Draw(0, 50'000), Draw(1, scenario_.prelude_cost));
  }
  // One occasional check is enough to keep what is held.
  for (; trickles && time < silence; time += term / 5) CheckAt(node, time, 1);
  events_.At(silence, [this, &node] { PlanBurst(node); });
}

void World::PlanSteady(Node& node) {
  const auto gap = static_cast<Nanos>(static_cast<double>(scenario_.steady_gap) /
                                      WeightOf(scenario_, node.index));
  events_.At(events_.now() + Draw(0, 2 * gap), [this, &node] {
    if (node.process != nullptr) node.process->Check(1);
    PlanSteady(node);
  });
}

void World::PlanBurst(Node& node) {
  // Sometimes just before or after a lease ends, where the edge cases are.
  const Nanos gap = Draw(0, scenario_.most_gap);
  events_.At(events_.now() + gap, [this, &node] {
    if (scenario_.together) {
      for (const auto& each : nodes_) Burst(*each);
    } else {
      Burst(node);
    }
    PlanBurst(node);
  });
}

void World::BurstInHalves(Node& node) {
  constexpr int kHalves = 7;
  std::int64_t cost = scenario_.quota.limit();
  for (int i = 0; i < kHalves; ++i) {
    cost = std::max<std::int64_t>(cost / 2, 1);
    CheckAt(node, events_.now() + i * 1000, cost);
  }
  for (std::int64_t i = Draw(0, 20); i > 0; --i) CheckAt(node, events_.now() + 10'000, 1);
}

void World::Burst(Node& node) {
  if (scenario_.halves) return BurstInHalves(node);
  const int checks = static_cast<int>(Draw(1, scenario_.most_burst));
  const Nanos apart = Draw(0, 3) == 0 ? 0 : Draw(1, 300) * 1000;
  for (int i = 0; i < checks; ++i) {
    const bool dear = scenario_.most_cost > 1 && Draw(0, 1) == 0;
    CheckAt(node, events_.now() + i * apart, dear ? Draw(1, scenario_.most_cost) : 1);
  }
}

void World::CheckAt(Node& node, Nanos time, std::int64_t cost) {
  events_.At(node.pulse->Due(time), [this, &node, cost] {
    if (node.process != nullptr && node.pulse->Due(events_.now()) == events_.now()) {
      node.process->Check(cost);
    }
  });
}

}  // namespace weir::simulation
