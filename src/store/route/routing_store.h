#pragma once

// Several stores as one. Charges go where their keys are (routes.h). What is all or nothing over
// several servers is charged on one after the other, and given back where it was charged when a
// later one refuses: no limit is exceeded by that, but for the time of a round trip a refused
// request holds permits. Keys that are being moved are charged in both stores, and pass if both let
// them. docs/guide/several-stores.md says what follows from it, and docs/reference/bounds.md how
// much.

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

/// What the stores of all reactors count. Thread-safe.
struct RoutingCounts {
  std::atomic<std::uint64_t> split{0};       ///< charges that concern several servers
  std::atomic<std::uint64_t> undone{0};      ///< of them: given back, since a later one refused
  std::atomic<std::uint64_t> not_undone{0};  ///< could not be given back
  std::atomic<std::uint64_t> levelled{0};    ///< keys that were charged what they had used before
  std::atomic<std::uint64_t> missed{0};      ///< charges that the new store did not hear of

  /// weir_store_split_total and others.
  void Collect(telemetry::TextWriter& out) const;
};

/// The routes in force. Called on the store's thread; valid until the next call.
using CurrentRoutes = std::function<const Routes&()>;

/// Thread safety: as Store, belongs to one thread.
class RoutingStore final : public Store {
 public:
  /// `members` are the servers that the routes name; `counts` must outlive it and its calls. A key
  /// is levelled at most once in `level_pause`, which must be longer than a call may take: who saw
  /// the key before another levelled it must not do so again.
  RoutingStore(std::vector<std::unique_ptr<Store>> members, CurrentRoutes routes,
               RoutingCounts& counts, std::chrono::milliseconds level_pause);
  /// What is under way ends with what the members say about it.
  ~RoutingStore() override;
  RoutingStore(const RoutingStore&) = delete;
  RoutingStore& operator=(const RoutingStore&) = delete;

  void Apply(std::span<Application> batch, Done done) override;

  /// What calls under way hold, too: they find it without members when the store is gone.
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
