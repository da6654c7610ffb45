#pragma once

// Endpoints for operators and monitoring: /healthz, /readyz, /metrics.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/policy_store.h"
#include "limiter/counters.h"
#include "net/reactor_pool.h"
#include "policy/catalog.h"
#include "protocol/http/router.h"
#include "telemetry/metrics.h"
#include "weir/engine.h"

namespace weir::admin {

/// The phase of the service's life. Thread-safe.
class Lifecycle {
 public:
  /// True from the moment the service accepts requests until the drain begins.
  bool ready() const noexcept { return ready_.load(std::memory_order_acquire); }
  void SetReady(bool ready) noexcept { ready_.store(ready, std::memory_order_release); }

 private:
  std::atomic<bool> ready_{false};
};

/// What leased policies have done on this node since it started.
struct LeaseTotals {
  std::uint64_t keys = 0;   ///< leased now
  std::int64_t held = 0;    ///< permits now
  std::uint64_t local = 0;  ///< checks decided without the store
  std::uint64_t calls = 0;  ///< to the store that took permits
  std::uint64_t granted = 0;
  std::uint64_t lost = 0;  ///< permits that ended unspent
};

/// The health of a store that is not in this process.
struct StoreHealth {
  bool up = false;                ///< its last call was answered
  bool serving = true;            ///< false: the service should get no requests now
  bool policies_known = true;     ///< false: never read; then it should get none, either
  std::string_view breaker = {};  ///< closed, half-open or open
  bool channel_up = false;        ///< messages between nodes arrive
  std::string last_error = {};
  std::uint64_t times_lost = 0;            ///< how often it has lost data, since the start
  Nanos lost_at = 0;                       ///< the last time
  std::optional<LeaseTotals> leases = {};  ///< nullopt if no lease was ever requested
};
/// nullopt for a store that cannot be down.
using StoreHealthOf = std::function<std::optional<StoreHealth>()>;

/// A part of the service that may be down while the rest works.
struct Probe {
  std::string name;          ///< "slots"
  std::function<bool()> up;  ///< from any thread, without waiting
};

/// The names of the parts that are down: "store", "policies" and those of the probes. Empty if
/// everything works.
std::vector<std::string> WhatIsDown(const std::optional<StoreHealth>& store, bool policies_up,
                                    const std::vector<Probe>& probes);

/// "the store is down"; empty if it may get requests.
std::string WhyNotReady(const std::optional<StoreHealth>& store);

/// Adds GET /healthz (200 while the process lives), /readyz (503 before start, while draining, and
/// while a required store is down) and /metrics. A part that is down is named by /readyz, which
/// still answers 200: the rest of the node works. All arguments must outlive the router.
void AddOperations(http::Router& router, const Lifecycle& lifecycle,
                   const telemetry::Registry& registry, const StoreHealthOf& store_health,
                   const std::vector<Probe>& probes);

/// weir_allowed_total, weir_blocked_total and each policy's decisions. Policies beyond the first
/// kMaxPolicyLabels are added up under "other", so that the number of series is bounded.
inline constexpr std::size_t kMaxPolicyLabels = 100;
void CollectDecisions(const limiter::Counters& counters, telemetry::TextWriter& out);

/// Keys of the memory store.
void CollectKeys(std::size_t keys, const EngineStats& stats, telemetry::TextWriter& out);

/// The result of the last reload of policy files.
void CollectReloads(const policy::Catalog::Status& status, telemetry::TextWriter& out);

/// The health of the store in which the admin API keeps policies.
void CollectPolicyStore(const policy::PolicyHealth& health, telemetry::TextWriter& out);

/// Connections of all reactors.
void CollectConnections(net::ReactorPool& pool, telemetry::TextWriter& out);

}  // namespace weir::admin
