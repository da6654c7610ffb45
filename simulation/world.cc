#include "world.h"

#include <algorithm>
#include <utility>

#include "algorithm/algorithms.h"
#include "algorithm/lease.h"
#include "world_node.h"

namespace weir::simulation {
namespace {

constexpr Nanos kMillisecond = 1'000'000;

/// The wider of two quotas: the most that both together may admit.
const Quota& Wider(const Quota& one, const Quota& other) {
  return one.limit() >= other.limit() ? one : other;
}

/// The quota with this many more permits.
Quota WithMore(const Quota& quota, std::int64_t more) {
  algorithm::Numbers numbers = algorithm::NumbersOf(quota);
  numbers.limit += more;
  return *algorithm::Of(quota).make(numbers);
}

/// The most that a process may grant by itself. A bucket keeps its debt as time when its policy
/// changes, and shares are rounded to whole permits, so each change may free a fraction of one.
Quota LocalShare(const Scenario& scenario) {
  const Quota share = policy::ShareOf(Wider(scenario.quota, scenario.changed), 0.1);
  const bool changes = scenario.quota != scenario.changed;
  if (share.algorithm() != Algorithm::kTokenBucket || !changes) return share;
  return WithMore(share, scenario.policy_returns_at != 0 ? 2 : 1);
}

}  // namespace

World::World(const Scenario& scenario)
    : scenario_(scenario),
      random_(scenario.seed ^ 0x9E3779B97F4A7C15ULL),
      server_(
          events_,
          [this](std::string_view key, std::int64_t cost, std::int64_t lease) {
            Admit(key, cost, lease);
          },
          [this](std::int64_t lease) {
            in_flight_.Released(lease, StoreClock::kEpoch + events_.now());
          }) {
  for (std::size_t i = 0; i < scenario_.regions; ++i) {
    regions_.push_back(
        std::make_unique<Region>(events_, server_, scenario_, random_(),
                                 [this](std::string_view key, std::int64_t cost,
                                        std::int64_t lease) { Admit(key, cost, lease); }));
  }
  const auto policies = Policies(scenario_, scenario_.quota, ids_);
  for (std::size_t i = 0; i < scenario_.nodes; ++i) {
    const std::int64_t ppm =
        Draw(0, 2) == 0 ? Draw(-kWorstPpm, kWorstPpm) : (Draw(0, 1) == 0 ? -kWorstPpm : kWorstPpm);
    nodes_.push_back(
        std::make_unique<Node>(events_, Draw(0, Nanos{1} << 50), ppm, random_(), policies));
    nodes_.back()->index = i;
  }
}

World::~World() {
  for (const auto& node : nodes_) Stop(*node);
}

std::int64_t World::Draw(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
}

Outcome World::Run() {
  for (const auto& region : regions_) {
    PlanRegionFaults(*region);
    if (scenario_.region_asks) PlanRegionDemand(*region);
  }
  for (const auto& node : nodes_) {
    Start(*node);
    PlanFaults(*node);
    if (!scenario_.together || node == nodes_.front()) PlanDemand(*node);
    if (scenario_.policy_changes_at != 0) {
      const Nanos spread = Draw(0, 100 * kMillisecond);
      PublishAt(*node, scenario_.policy_changes_at + spread, scenario_.changed);
      if (scenario_.policy_returns_at != 0) {
        PublishAt(*node, scenario_.policy_returns_at + spread, scenario_.quota);
      }
    }
  }
  if (scenario_.share_term > 0) CountUnits();
  if (scenario_.loses_at > 0) {
    events_.At(scenario_.loses_at - scenario_.loses, [this] { server_.Save(); });
    events_.At(scenario_.loses_at, [this] { server_.LoseSince(); });
  }
  events_.RunUntil(scenario_.length);
  for (const auto& node : nodes_) Stop(*node);
  Judge();
  outcome_.calls = server_.calls();
  for (const auto& region : regions_) {
    outcome_.lent += region->lent();
    if (!outcome_.violation) outcome_.violation = region->violation();
  }
  return std::move(outcome_);
}

void World::Start(Node& node) {
  Upstream* store = &server_;
  if (!regions_.empty()) store = regions_[node.index % regions_.size()].get();
  node.process =
      std::make_unique<Process>(events_, *store, scenario_, node.clock, node.link, node.random,
                                node.pulse, node.policies, ids_,
                                Told{[this, &node](const Spent& spent) { Note(node, spent); },
                                     [this, &node](std::int64_t cost, std::int64_t lease) {
                                       PlanRefund(node, cost);
                                       PlanRelease(node, lease);
                                     },
                                     [this, &node](std::int64_t back) {
                                       node.refunded += static_cast<std::uint64_t>(back);
                                       Admit("/hot|", -back, 0);
                                     }});
}

void World::Stop(Node& node) {
  if (node.process == nullptr) return;
  const store::lease::LeaseMetrics& metrics = node.process->metrics();
  outcome_.local += metrics.local.value();
  outcome_.lost += metrics.lost.value();
  outcome_.shared += metrics.share_spent.value();
  outcome_.asks += metrics.asks.value();
  outcome_.granted += metrics.granted.value();
  outcome_.shares.push_back(node.process->allowed());
  outcome_.allowed += node.process->allowed();
  outcome_.refused += node.process->refused();
  const std::uint64_t most = metrics.granted.value() + std::exchange(node.refunded, 0);
  if (metrics.spent.value() > most && !outcome_.violation) {
    outcome_.violation = "a node spent " + std::to_string(metrics.spent.value()) + " permits of " +
                         std::to_string(most) + " granted";
  }
  node.process.reset();
  // The local share of each process is bounded: docs/design/leases.md.
  const Quota share = LocalShare(scenario_);
  if (const auto refused = FirstRefused(share, std::exchange(node.degraded, {}));
      refused && !outcome_.violation) {
    outcome_.violation = "without the store: " + *refused;
  }
}

void World::PlanFaults(Node& node) {
  const Nanos term = scenario_.quota.window().count() / 20;
  const auto moment = [this] { return Draw(1, scenario_.length); };
  for (int i = 0; i < scenario_.cuts; ++i) {
    events_.At(moment(), [this, &node, lasts = Draw(term, 8 * term)] {
      node.link.cut_until = events_.now() + lasts;
    });
  }
  for (int i = 0; i < scenario_.freezes; ++i) {
    events_.At(moment(), [this, &node, lasts = Draw(term / 2, 4 * term)] {
      node.pulse->stands_until = events_.now() + lasts;
    });
  }
  for (int i = 0; i < scenario_.crashes; ++i) {
    events_.At(moment(), [this, &node, lasts = Draw(1, 4 * term)] {
      Stop(node);
      events_.At(events_.now() + lasts, [this, &node] {
        if (node.process == nullptr) Start(node);
      });
    });
  }
  if (scenario_.drains) {
    events_.At(moment(), [&node] {
      if (node.process != nullptr) node.process->Drain();
    });
  }
}

void World::PlanRegionFaults(Region& region) {
  const Nanos term = scenario_.quota.window().count() / 20;
  const auto moment = [this] { return Draw(1, scenario_.length); };
  for (int i = 0; i < scenario_.cuts; ++i) {
    events_.At(moment(), [this, &region, lasts = Draw(term, 8 * term)] {
      region.link().cut_until = events_.now() + lasts;
    });
  }
  for (int i = 0; i < scenario_.freezes; ++i) {
    events_.At(moment(), [this, &region, lasts = Draw(term / 2, 2 * term)] {
      region.pulse().stands_until = events_.now() + lasts;
    });
  }
  for (int i = 0; i < scenario_.crashes; ++i) {
    events_.At(moment(), [&region] { region.Crash(); });
  }
}

void World::PublishAt(Node& node, Nanos time, const Quota& quota) {
  events_.At(time,
             [this, &node, &quota] { node.policies.Publish(Policies(scenario_, quota, ids_)); });
}

void World::Note(Node& node, const Spent& spent) {
  if (!spent.degraded) return Admit(spent.key, spent.cost, spent.lease);
  ++outcome_.degraded;
  if (IsHot(spent.key)) node.degraded.push_back({node.clock.Now(), spent.cost});
}

/// A client refunds what did not happen after all a little later, on the node that admitted it.
void World::PlanRefund(Node& node, std::int64_t cost) {
  if (scenario_.refund_percent == 0 || Draw(1, 100) > scenario_.refund_percent) return;
  const Nanos term = scenario_.quota.window().count() / 20;
  events_.At(node.pulse->Due(events_.now() + Draw(0, 2 * term)), [this, &node, cost] {
    if (node.process == nullptr || node.pulse->Due(events_.now()) != events_.now()) return;
    node.process->Refund(cost);
  });
}

/// A client releases its permit when it is done, at any node, perhaps twice; or never.
void World::PlanRelease(Node& node, std::int64_t lease) {
  in_flight_.Claimed(lease);
  if (lease == 0 || Draw(1, 100) <= scenario_.kept_percent) return;
  const Nanos done = events_.now() + Draw(0, scenario_.most_hold);
  events_.At(done, [this, lease] { in_flight_.Done(lease, StoreClock::kEpoch + events_.now()); });
  const auto any = [&]() -> Node& {
    return Draw(0, 1) == 0 ? node
                           : *nodes_[static_cast<std::size_t>(Draw(0, std::ssize(nodes_) - 1))];
  };
  ReleaseAt(any(), done, lease);
  if (Draw(1, 100) > scenario_.twice_percent) return;
  ReleaseAt(any(), done + Draw(0, scenario_.most_hold), lease);
}

void World::ReleaseAt(Node& node, Nanos time, std::int64_t lease) {
  events_.At(time, [this, &node, lease] {
    if (node.process == nullptr || node.pulse->Due(events_.now()) != events_.now()) return;
    node.process->Release(lease);
  });
}

/// Nodes together never count on more units of the rate than there are. Checked directly, at
/// intervals: a node with too many often spends far less than it could with them.
void World::CountUnits() {
  std::int64_t units = 0;
  for (const auto& node : nodes_) {
    if (node->process != nullptr) units += node->process->units();
  }
  if (units > algorithm::kShareUnits && !outcome_.violation) {
    outcome_.violation = "nodes count on " + std::to_string(units) + " units of the rate, of " +
                         std::to_string(algorithm::kShareUnits);
  }
  constexpr Nanos kLooks = 128;  // checks per term
  events_.At(events_.now() + scenario_.share_term / kLooks, [this] { CountUnits(); });
}

void World::Admit(std::string_view key, std::int64_t cost, std::int64_t lease) {
  const Admission admission{StoreClock::kEpoch + events_.now(), cost};
  if (lease != 0) in_flight_.Admitted(lease, admission.time, cost);
  (IsHot(key) ? hot_ : other_).push_back(admission);
  for (const std::int64_t word : {admission.time, cost}) {
    outcome_.digest = (outcome_.digest ^ static_cast<std::uint64_t>(word)) * 0x100000001B3ULL;
  }
}

/// Compares everything that was admitted, in the store's time, with the original quota.
void World::Judge() {
  if (outcome_.violation) return;
  const Quota quota = WithMore(Wider(scenario_.quota, scenario_.changed), server_.lost());
  outcome_.violation = quota.algorithm() == Algorithm::kConcurrency ? in_flight_.FirstTooMany(quota)
                                                                    : FirstRefused(quota, hot_);
  if (!outcome_.violation && scenario_.both_leased) {
    outcome_.violation = FirstRefused(scenario_.other(), other_);
  }
  if (outcome_.violation) return;
  if (const auto refused = server_.ledger().FirstRefused(); refused && scenario_.loses_at == 0) {
    outcome_.violation = "as if what was returned had never been charged: " + *refused;
    return;
  }
  // A region never waits: grants that are lost, or take longer to arrive than they last, are
  // useless to it.
  const bool unserved = scenario_.regions > 0 &&
                        (scenario_.lost_percent > 0 || scenario_.most_delay > scenario_.node_term);
  // A lost answer takes its grant with it, perhaps everything there is (seed 329992).
  const bool taken = scenario_.lost_percent > 0 && server_.granted() >= quota.limit();
  const bool faults =
      unserved || taken || scenario_.cuts + scenario_.freezes + scenario_.crashes > 0;
  if (hot_.empty() && !faults && outcome_.refused > 0) {
    outcome_.violation = "no progress: nothing was admitted, " + std::to_string(outcome_.refused) +
                         " checks were refused";
  }
}

}  // namespace weir::simulation
