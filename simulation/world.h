#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "network.h"
#include "node.h"
#include "oracle.h"
#include "policy/policy_set.h"
#include "region.h"
#include "scenario.h"
#include "virtual_time.h"

namespace weir::simulation {

/// The result of a run.
struct Outcome {
  std::optional<std::string> violation;  ///< what must not happen, described
  std::uint64_t digest = 0;              ///< of everything that was admitted and when
  std::uint64_t allowed = 0;
  std::uint64_t refused = 0;
  std::uint64_t local = 0;  ///< checks decided without the store
  std::uint64_t degraded = 0;
  std::uint64_t calls = 0;            ///< to the store
  std::uint64_t shared = 0;           ///< permits spent from shares of the rate
  std::uint64_t lost = 0;             ///< permits that expired unspent
  std::uint64_t asks = 0;             ///< of these calls: requests for permits in advance
  std::uint64_t granted = 0;          ///< permits, to these
  std::uint64_t lent = 0;             ///< of these, by regions
  std::vector<std::uint64_t> shares;  ///< checks admitted on each node
};

/// A scenario, from its first event to the verdict of the oracle. Not thread-safe; worlds share
/// nothing.
class World {
 public:
  explicit World(const Scenario& scenario);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Outcome Run();

 private:
  struct Node;

  std::int64_t Draw(std::int64_t low, std::int64_t high);
  void Start(Node& node);
  void Stop(Node& node);
  void PlanFaults(Node& node);
  void PlanRegionFaults(Region& region);
  void PlanRegionDemand(Region& region);
  void PlanRegionRefund(Region& region, std::int64_t cost);
  void PlanDemand(Node& node);
  void PlanSteady(Node& node);
  void PlanBurst(Node& node);
  void Burst(Node& node);
  void BurstInHalves(Node& node);
  void CheckAt(Node& node, Nanos time, std::int64_t cost);
  void PublishAt(Node& node, Nanos time, const Quota& quota);
  void Note(Node& node, const Spent& spent);
  void PlanRefund(Node& node, std::int64_t cost);
  void PlanRelease(Node& node, std::int64_t lease);
  void ReleaseAt(Node& node, Nanos time, std::int64_t lease);
  void CountUnits();
  void Admit(std::string_view key, std::int64_t cost, std::int64_t lease);
  void Judge();

  const Scenario scenario_;
  std::mt19937_64 random_;
  Events events_;
  Server server_;
  std::vector<std::unique_ptr<Region>> regions_;
  policy::PolicyIds ids_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Admission> hot_;
  std::vector<Admission> other_;
  InFlight in_flight_;
  Outcome outcome_;
};

}  // namespace weir::simulation
