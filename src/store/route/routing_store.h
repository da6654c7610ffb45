#pragma once

// Several stores as one. Charges go where their keys are (routes.h). An all-or-nothing charge on
// several servers is made on one after the other, and undone where it was made when a later one
// refuses: no limit is exceeded by that, but for a round trip a refused request holds permits.
// Keys that are being moved are charged in both stores, and pass if both allow them.
// docs/guide/several-stores.md describes the consequences, and docs/reference/bounds.md their
// size.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "store/route/routes.h"
#include "store/store.h"
#include "telemetry/metrics.h"

namespace weir::store::route {

/// Counters shared by the stores of all reactors. Thread-safe.
struct RoutingCounts {
  std::atomic<std::uint64_t> split{0};       ///< charges that span several servers
  std::atomic<std::uint64_t> undone{0};      ///< of them: undone, because a later one refused
  std::atomic<std::uint64_t> not_undone{0};  ///< could not be undone
  std::atomic<std::uint64_t> levelled{0};    ///< keys charged for what they had used before
  std::atomic<std::uint64_t> missed{0};      ///< charges that did not reach the new store

  /// weir_store_split_total and others.
  void Collect(telemetry::TextWriter& out) const;
};

/// The routes in force. Called on the store's thread; valid until the next call.
using CurrentRoutes = std::function<const Routes&()>;

/// Thread safety: as Store, belongs to one thread.
class RoutingStore final : public Store {
 public:
  /// `members` are the servers that the routes name; `counts` must outlive it and its calls. A key
  /// is levelled at most once in `level_pause`, which must be longer than a call may take: a call
  /// that read the key before another levelled it must not level it again.
  RoutingStore(std::vector<std::unique_ptr<Store>> members, CurrentRoutes routes,
               RoutingCounts& counts, std::chrono::milliseconds level_pause);
  /// Calls that are under way end with what their members answer.
  ~RoutingStore() override;
  RoutingStore(const RoutingStore&) = delete;
  RoutingStore& operator=(const RoutingStore&) = delete;

  void Apply(std::span<Application> batch, Done done) override;

  /// Held by calls under way, too: after the store is destroyed, they find no members in it.
  struct Shared {
    std::vector<std::unique_ptr<Store>> members;
    RoutingCounts& counts;
    const Quota once_per_pause;
  };

 private:
  const CurrentRoutes routes_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace weir::store::route
