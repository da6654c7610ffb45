#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "limiter/policy_limiter.h"
#include "network.h"
#include "policy/policy_set.h"
#include "scenario.h"
#include "store/guard/guarded_store.h"
#include "store/guard/prober.h"
#include "store/lease/leasing_store.h"
#include "virtual_time.h"

namespace weir::simulation {

/// A permit that was spent on a node without asking the store, or while the store was away.
struct Spent {
  std::string_view key;
  std::int64_t cost = 0;
  bool degraded = false;
  std::int64_t lease = 0;  ///< the name of a concurrency quota's permit
};
/// What a process reports to the world.
struct Told {
  std::function<void(const Spent&)> spent;
  /// A check admitted while the store was up, and the name of its permit.
  std::function<void(std::int64_t cost, std::int64_t lease)> admitted;
  /// A client refunded permits, and the node may spend this many of them again.
  std::function<void(std::int64_t back)> refunded;
};

inline constexpr std::string_view kHot = "hot";
inline constexpr std::string_view kOther = "other";

/// The policies of a scenario: `leased`, and in addition an exact one if there are two.
std::shared_ptr<const policy::PolicySet> Policies(const Scenario& scenario, const Quota& quota,
                                                  policy::PolicyIds& ids);

/// One process of the service, from the limiter down to its connection: the real code, with
/// simulated timers, clock and network.
class Process {
 public:
  Process(Events& events, Upstream& server, const Scenario& scenario, const NodeClock& clock,
          Link& link, std::mt19937_64& random, std::shared_ptr<const Pulse> pulse,
          const policy::LivePolicies& policies, const policy::PolicyIds& ids, Told told);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Check(std::int64_t cost);
  /// Refunds a check that was admitted.
  void Refund(std::int64_t cost);
  /// Releases the permit with that name, whichever node granted it.
  void Release(std::int64_t lease) { Decide(store::Op::kRelease, 1, lease); }
  void Drain() { leasing_->Drain(); }
  /// Units of the rate that it counts on.
  std::int64_t units() const { return leasing_->CountUnits(); }

  std::uint64_t allowed() const noexcept { return allowed_; }
  std::uint64_t refused() const noexcept { return refused_; }
  const store::lease::LeaseMetrics& metrics() const noexcept { return *metrics_; }

 private:
  class Tap;
  struct Pending;
  void Decide(store::Op op, std::int64_t cost, std::int64_t lease = 0);
  void Finish(Pending& pending);

  const Scenario& scenario_;
  const Told told_;
  std::uint64_t allowed_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t refunded_ = 0;  // reported so far
  store::guard::Guard guard_;
  store::lease::Leases leases_;
  std::shared_ptr<store::lease::LeaseMetrics> metrics_;
  limiter::Shared shared_;
  // The keys of checks in progress that went on to the store, by the address of their text: a check
  // may wait before it does, and others have the same keys.
  std::unordered_set<const char*> sent_;
  store::lease::LeasingStore* leasing_ = nullptr;
  std::unique_ptr<store::guard::GuardedStore> guarded_;
  std::unique_ptr<store::guard::Prober> prober_;
  std::vector<std::unique_ptr<Pending>> pending_;
  std::unique_ptr<limiter::PolicyLimiter> limiter_;
};

}  // namespace weir::simulation
