#include "scenario.h"

#include <algorithm>
#include <random>

#include "algorithm/lease.h"

namespace weir::simulation {
namespace {

constexpr Nanos kMillisecond = 1'000'000;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    // Not a standard distribution: a seed must mean the same everywhere.
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool Percent(int percent) { return (*this)(1, 100) <= percent; }

 private:
  std::mt19937_64 random_;
};

Algorithm AlgorithmFor(Mutant mutant, Dice& dice) {
  switch (mutant) {
    case Mutant::kNoHeadroom:
    case Mutant::kFullRefund:
    case Mutant::kOnlyShares:
    case Mutant::kFullShare:
    case Mutant::kShareOutlived:
    case Mutant::kSharedTwice:
    case Mutant::kLateShare:
      return Algorithm::kTokenBucket;
    case Mutant::kLogNotWidened:
    case Mutant::kNewestFirst:
      return Algorithm::kSlidingLog;
    case Mutant::kPastWindow:
    case Mutant::kRefundInStore:
      return dice.Percent(50) ? Algorithm::kFixedWindow : Algorithm::kSlidingCounter;
    default:
      return static_cast<Algorithm>(dice(0, 3));
  }
}

Quota DrawQuota(Algorithm algorithm, std::int64_t limit, Nanos window, std::int64_t buckets) {
  const std::chrono::nanoseconds span(window);
  switch (algorithm) {
    case Algorithm::kFixedWindow:
      return *Quota::FixedWindow(limit, span);
    case Algorithm::kSlidingLog:
      return *Quota::SlidingLog(limit, span);
    case Algorithm::kSlidingCounter:
      return *Quota::SlidingCounter(limit, span, buckets);
    default:
      return *Quota::TokenBucket(limit, limit, span);
  }
}

/// From a separate generator, so that worlds without regions stay unchanged.
std::size_t DrawRegions(std::uint64_t seed, Mutant mutant) {
  Dice dice(seed ^ 0xD1B54A32D192ED03ULL);
  if (mutant == Mutant::kRegionOutlived || mutant == Mutant::kOnlyRegions)
    return static_cast<std::size_t>(dice(1, 3));
  if (mutant != Mutant::kNone || !dice.Percent(15)) return 0;
  return static_cast<std::size_t>(dice(1, 3));
}

bool OfShares(Mutant mutant) {
  return mutant == Mutant::kOnlyShares || mutant == Mutant::kFullShare ||
         mutant == Mutant::kShareOutlived || mutant == Mutant::kSharedTwice ||
         mutant == Mutant::kLateShare;
}

/// From a separate generator as well. Half of the buckets are divided into shares that end several
/// times in a run; 0: not this one.
Nanos DrawShareTerm(const Scenario& scenario) {
  Dice dice(scenario.seed ^ 0xA0761D6478BD642FULL);
  if (scenario.quota.algorithm() != Algorithm::kTokenBucket || scenario.regions > 0) return 0;
  const bool drawn = scenario.mutant == Mutant::kNone && dice.Percent(50);
  if (!drawn && !OfShares(scenario.mutant)) return 0;
  for (const Quota& quota : {scenario.quota, scenario.changed}) {
    if (!algorithm::RateTermsFor(quota).ok()) return 0;
  }
  return std::max(scenario.length / dice(3, 12), 40 * kMillisecond);
}

/// Properties added later to existing worlds, from yet another generator.
void DrawMore(Scenario& scenario) {
  Dice dice(scenario.seed ^ 0x8EBC6AF09C88C6E3ULL);
  if (scenario.mutant != Mutant::kNone && scenario.mutant != Mutant::kOnlyShares &&
      scenario.mutant != Mutant::kOnlyRegions) {
    return;
  }
  scenario.both_leased =
      scenario.two_keys && dice.Percent(50) && algorithm::TermsFor(scenario.other()).ok();
  if (scenario.both_leased) scenario.refund_percent = 0;
  const Nanos changes = scenario.policy_changes_at;
  if (changes != 0 && dice.Percent(50)) {
    scenario.policy_returns_at = changes + dice(0, scenario.length / 4);
  }
  scenario.region_asks = scenario.regions > 0 && dice.Percent(50);
  // Of shares, more is lost than was charged: the units count for as long as nodes hold them.
  if (scenario.two_keys || scenario.share_term > 0 || !dice.Percent(10)) return;
  scenario.loses = dice(0, scenario.length / 4);
  scenario.loses_at = dice(scenario.loses + 1, scenario.length);
}

/// One world in ten, by a separate generator; and those of the mutants that concern permits.
bool OfPermits(std::uint64_t seed, Mutant mutant) {
  Dice dice(seed ^ 0xE7037ED1A0B428DBULL);
  return mutant == Mutant::kOnlyPermits || mutant == Mutant::kPermitNotWidened ||
         mutant == Mutant::kPermitOutlived || mutant == Mutant::kPermitKept ||
         (mutant == Mutant::kNone && dice.Percent(10));
}

/// The network, the faults and whatever may occur with any quota.
void DrawFaults(Scenario& scenario, Nanos term, Dice& dice) {
  scenario.local = dice.Percent(30);
  scenario.two_keys = dice.Percent(20);
  scenario.least_delay = dice(20, 500) * 1000;
  scenario.most_delay =
      dice.Percent(30) ? dice(term / 4, term) : scenario.least_delay + dice(0, 3) * kMillisecond;
  scenario.lost_percent = dice.Percent(30) ? static_cast<int>(dice(1, 10)) : 0;
  scenario.timeout = dice(20, 120) * kMillisecond;
  scenario.cuts = dice.Percent(20) ? static_cast<int>(dice(1, 2)) : 0;
  scenario.freezes = dice.Percent(30) ? static_cast<int>(dice(1, 3)) : 0;
  scenario.crashes = dice.Percent(20) ? static_cast<int>(dice(1, 2)) : 0;
  scenario.drains = dice.Percent(10);
}

/// A concurrency quota whose permits are leased.
Scenario DrawPermits(std::uint64_t seed, Mutant mutant, std::size_t nodes) {
  Dice dice(seed);
  const Nanos lease = dice(250, 900) * kMillisecond;
  const Nanos term = lease / 20;
  const std::size_t count =
      nodes != 0 ? nodes : static_cast<std::size_t>(dice(2, dice.Percent(20) ? 8 : 3));
  const std::int64_t most_burst = dice(10, 30);
  const Nanos most_gap = dice(term / 4, 2 * term);
  const Nanos most_hold = dice.Percent(50) ? dice(1, 2 * term) : dice(lease / 4, 2 * lease);
  // From a third of what clients would hold concurrently to slightly more than that.
  const std::int64_t demand =
      static_cast<std::int64_t>(count) * most_burst * std::min(most_hold, lease) / (2 * most_gap);
  const auto concurrency = [lease](std::int64_t limit) {
    return *Quota::Concurrency(std::clamp<std::int64_t>(limit, 64, 5000),
                               std::chrono::nanoseconds(lease));
  };
  const Quota quota = concurrency(demand * dice(30, 120) / 100);
  const bool changes = dice.Percent(15);
  const Quota changed = changes ? concurrency(quota.limit() * dice(50, 200) / 100) : quota;
  Scenario scenario{.seed = seed, .mutant = mutant, .quota = quota, .changed = changed};
  scenario.nodes = count;
  scenario.length = dice(1, 2) * lease + dice(0, 12) * term;
  DrawFaults(scenario, term, dice);
  scenario.policy_changes_at = changes ? dice(1, scenario.length) : 0;
  scenario.most_burst = static_cast<int>(most_burst);
  scenario.most_gap = most_gap;
  scenario.most_cost = dice.Percent(20) ? 4 : 1;
  scenario.together = dice.Percent(40);
  scenario.most_hold = most_hold;
  scenario.kept_percent = dice.Percent(30) ? static_cast<int>(dice(1, 20)) : 0;
  scenario.twice_percent = dice.Percent(30) ? static_cast<int>(dice(1, 50)) : 0;
  scenario.refund_percent = dice.Percent(20) ? static_cast<int>(dice(1, 20)) : 0;
  return scenario;
}

}  // namespace

std::string_view NameOf(Mutant mutant) noexcept {
  switch (mutant) {
    case Mutant::kNone:
      return "none";
    case Mutant::kOnlyShares:
      return "only-shares";
    case Mutant::kNoHeadroom:
      return "no-headroom";
    case Mutant::kLogNotWidened:
      return "log-not-widened";
    case Mutant::kFullRefund:
      return "full-refund";
    case Mutant::kNewestFirst:
      return "newest-first";
    case Mutant::kFromReceipt:
      return "from-receipt";
    case Mutant::kAfterTerm:
      return "after-term";
    case Mutant::kPastWindow:
      return "past-window";
    case Mutant::kRefundInStore:
      return "refund-in-store";
    case Mutant::kRegionOutlived:
      return "region-outlived";
    case Mutant::kFullShare:
      return "full-share";
    case Mutant::kShareOutlived:
      return "share-outlived";
    case Mutant::kSharedTwice:
      return "shared-twice";
    case Mutant::kLateShare:
      return "late-share";
    case Mutant::kOnlyPermits:
      return "only-permits";
    case Mutant::kOnlyRegions:
      return "only-regions";
    case Mutant::kPermitNotWidened:
      return "permit-not-widened";
    case Mutant::kPermitOutlived:
      return "permit-outlived";
    case Mutant::kPermitKept:
      return "permit-kept";
  }
  return {};
}

Scenario Draw(std::uint64_t seed, Mutant mutant, std::size_t nodes) {
  if (OfPermits(seed, mutant)) return DrawPermits(seed, mutant, nodes);
  Dice dice(seed);
  const Algorithm algorithm = AlgorithmFor(mutant, dice);
  const std::size_t regions = DrawRegions(seed, mutant);
  // Regions lease for longer, and nodes from them for a part of that.
  const Nanos window = dice(250, 900) * (regions > 0 ? 8 : 1) * kMillisecond;
  const std::size_t count =
      nodes != 0 ? nodes : static_cast<std::size_t>(dice(2, dice.Percent(20) ? 8 : 3));
  // A region keeps only what nodes keep requesting: in half of the worlds, in many small bursts.
  const bool dense = regions > 0 && dice.Percent(50);
  const std::int64_t most_burst = dice(10, 30) / (dense ? 4 : 1);
  const Nanos most_gap = dice(window / 40, window / 8) / (dense ? 10 : 1);
  // From a third of the demand to slightly more than it.
  const std::int64_t demand =
      static_cast<std::int64_t>(count) * most_burst * (window / (most_gap + 1)) + 1;
  const bool prelude = dice.Percent(40);
  const std::int64_t limit =
      prelude ? dice(300, 3000) : std::max<std::int64_t>(demand * dice(30, 120) / 100, 10);
  const std::int64_t buckets = dice(2, 20);
  const Quota quota = DrawQuota(algorithm, limit, window, buckets);
  const bool changes = dice.Percent(15);
  const Quota changed =
      changes ? DrawQuota(algorithm, dice(limit / 2 + 4, limit * 2), window, buckets) : quota;
  Scenario scenario{.seed = seed, .mutant = mutant, .quota = quota, .changed = changed};
  const Nanos term = algorithm::TermsFor(quota)->term;
  scenario.nodes = count;
  scenario.regions = regions;
  if (regions > 0) {
    scenario.node_term = algorithm::RegionTermsFor(quota, algorithm::kLongestLease)->term;
  }
  scenario.prelude = prelude;
  scenario.length = prelude ? dice(4, 24) * term : window + dice(0, 12) * term;
  if (prelude && algorithm == Algorithm::kSlidingLog) {
    // What a wrong return frees in a log is missing a window later.
    if (dice.Percent(30)) scenario.length = window + dice(1, 8) * term;
    if (dice.Percent(50)) scenario.prelude_cost = limit / dice(20, 100);
  }
  DrawFaults(scenario, term, dice);
  if (regions > 0) scenario.two_keys = false;
  scenario.policy_changes_at = changes ? dice(1, scenario.length) : 0;
  scenario.most_burst = static_cast<int>(most_burst);
  scenario.halves = prelude && dice.Percent(50);
  scenario.most_gap = most_gap;
  scenario.most_cost = dice.Percent(20) ? 4 : 1;
  if (prelude) scenario.most_cost = limit / dice(4, 15);
  scenario.together = !prelude && dice.Percent(40);
  const bool refunds = mutant == Mutant::kNone || mutant == Mutant::kOnlyShares ||
                       mutant == Mutant::kOnlyRegions || mutant == Mutant::kRefundInStore;
  scenario.refund_percent = refunds && dice.Percent(25) ? static_cast<int>(dice(2, 40)) : 0;
  scenario.share_term = DrawShareTerm(scenario);
  DrawMore(scenario);
  return scenario;
}

double WeightOf(const Scenario& scenario, std::size_t node) {
  constexpr std::size_t kWeights = 4;
  constexpr double kMean = 2.5;
  return scenario.uneven ? static_cast<double>(node % kWeights + 1) / kMean : 1;
}

Scenario Steady(const Quota& quota, std::size_t nodes, double demand, Nanos length, bool exact) {
  Scenario scenario{.seed = 1, .quota = quota, .changed = quota};
  scenario.exact = exact;
  scenario.nodes = nodes;
  scenario.length = length;
  scenario.least_delay = 200'000;
  scenario.most_delay = 500'000;
  scenario.timeout = 100 * kMillisecond;
  const double per_second = static_cast<double>(quota.limit()) * 1e9 /
                            static_cast<double>(quota.window().count()) * demand;
  scenario.steady_gap = static_cast<Nanos>(static_cast<double>(nodes) * 1e9 / per_second);
  return scenario;
}

std::string Scenario::ToString() const {
  std::string text = "seed " + std::to_string(seed) + " mutant " + std::string(NameOf(mutant)) +
                     ": " + quota.ToString();
  if (changed != quota) text += " then " + changed.ToString();
  text += ", " + std::to_string(nodes) + " nodes, " + std::to_string(length / kMillisecond) + " ms";
  if (local) text += ", on_store_error local";
  if (two_keys) text += both_leased ? ", two leased policies" : ", two policies";
  if (policy_returns_at > 0) text += ", and back";
  if (regions > 0) text += ", " + std::to_string(regions) + " regions";
  if (region_asks) text += " with clients";
  if (loses_at > 0) text += ", loses " + std::to_string(loses / 1000) + " us";
  if (prelude) text += ", prelude";
  if (share_term > 0) text += ", shares for " + std::to_string(share_term / kMillisecond) + " ms";
  if (most_hold > 0) text += ", held for " + std::to_string(most_hold / 1000) + " us";
  if (refund_percent > 0) text += ", refunds " + std::to_string(refund_percent) + " %";
  text += ", delay " + std::to_string(most_delay / 1000) + " us, lost " +
          std::to_string(lost_percent) + " %, cuts " + std::to_string(cuts) + ", freezes " +
          std::to_string(freezes) + ", crashes " + std::to_string(crashes);
  return text;
}

}  // namespace weir::simulation
