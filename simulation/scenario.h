#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/lease/holding.h"
#include "weir/clock.h"
#include "weir/quota.h"

namespace weir::simulation {

/// What is broken on purpose. The simulation must find each of them.
enum class Mutant : std::uint8_t {
  kNone,
  kOnlyShares,        ///< nothing is broken; every world has shares of a rate
  kOnlyPermits,       ///< nothing is broken; every world has a concurrency quota
  kOnlyRegions,       ///< nothing is broken; every world has regions
  kNoHeadroom,        ///< the store is charged under the original bucket
  kLogNotWidened,     ///< the same for a sliding log
  kFullRefund,        ///< a bucket's permits are returned by Refund
  kNewestFirst,       ///< a log's permits are returned by Refund
  kFromReceipt,       ///< a lease is counted from its arrival
  kAfterTerm,         ///< permits are spent after their term
  kPastWindow,        ///< permits are spent after their window, or bucket of a counter
  kRefundInStore,     ///< a client's refund goes to the store, where it may free others' leases
  kRegionOutlived,    ///< nodes lease what ends before their lease does
  kFullShare,         ///< a share of a rate begins with a full bucket
  kShareOutlived,     ///< a share of a rate is used after its term
  kSharedTwice,       ///< what is divided into shares is not subtracted from the rest of the quota
  kLateShare,         ///< a share of a rate is counted from its arrival
  kPermitNotWidened,  ///< the store counts permits of a concurrency quota for the lease alone
  kPermitOutlived,    ///< such permits are handed out after their term
  kPermitKept,        ///< such permits are handed out after they were returned
};
inline constexpr Mutant kMutants[] = {
    Mutant::kNoHeadroom,  Mutant::kLogNotWidened,    Mutant::kFullRefund,
    Mutant::kNewestFirst, Mutant::kFromReceipt,      Mutant::kAfterTerm,
    Mutant::kPastWindow,  Mutant::kRefundInStore,    Mutant::kRegionOutlived,
    Mutant::kFullShare,   Mutant::kShareOutlived,    Mutant::kSharedTwice,
    Mutant::kLateShare,   Mutant::kPermitNotWidened, Mutant::kPermitOutlived,
    Mutant::kPermitKept};
std::string_view NameOf(Mutant mutant) noexcept;

/// Everything about a run, derived from its seed.
struct Scenario {
  std::uint64_t seed = 0;
  Mutant mutant = Mutant::kNone;
  Quota quota;
  Quota changed;  ///< the quota after a change of policy; the same if there is none
  std::size_t nodes = 2;
  Nanos length = 0;
  bool local = false;        ///< on_store_error: local, else deny
  bool two_keys = false;     ///< each check also charges a second, exact policy
  bool both_leased = false;  ///< that one is leased as well
  // The network, each way.
  Nanos least_delay = 0;
  Nanos most_delay = 0;
  int lost_percent = 0;
  Nanos timeout = 0;
  // Faults per run and node.
  int cuts = 0;
  int freezes = 0;
  int crashes = 0;
  bool drains = false;
  Nanos loses_at = 0;  ///< the home store reverts to its state of `loses` earlier; 0: never
  Nanos loses = 0;
  Nanos policy_changes_at = 0;  ///< 0: never
  Nanos policy_returns_at = 0;  ///< back to the first one; 0: never
  // Demand: bursts of checks, separated by `gap`.
  int most_burst = 0;
  Nanos most_gap = 0;
  std::int64_t most_cost = 1;
  bool together = false;  ///< all nodes' bursts come at the same time
  /// Begins with a few checks, which take leases, and a silence in which they age and the quota
  /// recovers; only then comes the demand, with costs that use everything up.
  bool prelude = false;
  std::int64_t prelude_cost = 1;  ///< of each of these checks, at most
  /// Bursts have the costs limit/2, limit/4, … and a few of 1: too few checks for a lease, so they
  /// go to the store and use up nearly everything it has; the small ones use up what is held.
  bool halves = false;
  /// Instead of bursts: checks of cost 1 on each node, this far apart on average. 0: bursts.
  Nanos steady_gap = 0;
  bool uneven = false;  ///< with steady_gap: nodes get 1, 2, 3 and 4 times as many, in turn
  /// Stores that lease from the one at home and let the nodes lease from them. 0: all nodes use the
  /// home store.
  std::size_t regions = 0;
  Nanos node_term = 0;       ///< with regions: how long nodes lease for, at most
  bool region_asks = false;  ///< the stores of regions have their own clients
  int refund_percent = 0;    ///< of what is admitted: the client refunds it a little later
  Nanos share_term = 0;      ///< if not 0: mode rate_leased, with shares for this long
  bool exact = false;        ///< for comparison: the hot policy is not leased
  // For a concurrency quota.
  Nanos most_hold = 0;    ///< after at most this long a client releases its permit, at any node,
  int kept_percent = 0;   ///< but these never,
  int twice_percent = 0;  ///< and these twice

  /// The second policy: generous, so that it refuses only now and then.
  Quota other() const { return *Quota::TokenBucket(quota.limit() * 3, 500); }
  std::string ToString() const;
};

/// No faults: `nodes` with equal demand, together `demand` times what the quota grants.
Scenario Steady(const Quota& quota, std::size_t nodes, double demand, Nanos length,
                bool exact = false);
/// A node's demand relative to the mean of all, at steady demand.
double WeightOf(const Scenario& scenario, std::size_t node);

/// `nodes` 0: random.
Scenario Draw(std::uint64_t seed, Mutant mutant, std::size_t nodes = 0);

}  // namespace weir::simulation
