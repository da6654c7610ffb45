#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "store/lease/flaws.h"
#include "telemetry/metrics.h"
#include "weir/clock.h"

namespace weir::store::lease {

struct LeaseOptions {
  /// Keys of leased policies that one reactor watches at a time; keys beyond are charged exactly.
  std::size_t max_keys = 10'000;
  /// Null: BootClock, which counts suspension. Only its rate matters.
  const Clock* clock = nullptr;
  /// For the random part of pauses. 0: chosen at random.
  std::uint32_t seed = 0;
  /// A region's store: keeps permits for as long as Application::region says and lends them.
  bool lends = false;
  Flaws flaws = {};
};

/// Counters of one reactor's leasing store, written by its thread and readable by any.
struct LeaseMetrics {
  std::atomic<std::uint64_t> keys{0};     ///< leased now
  std::atomic<std::int64_t> held{0};      ///< permits now
  telemetry::LocalCounter spent;          ///< permits, without asking the store
  telemetry::LocalCounter local;          ///< checks decided without asking the store
  telemetry::LocalCounter refused;        ///< of these: refused
  telemetry::LocalCounter asks;           ///< calls that take permits
  telemetry::LocalCounter granted;        ///< permits
  telemetry::LocalCounter returned;       ///< permits returned unspent
  telemetry::LocalCounter refunded;       ///< permits that clients refunded, spendable again
  telemetry::LocalCounter lost;           ///< permits that expired unspent
  telemetry::LocalCounter lent;           ///< permits, to nodes of this region
  std::atomic<std::uint64_t> sharing{0};  ///< keys with a share of their rate now
  telemetry::LocalCounter share_asks;     ///< calls that reserve one
  telemetry::LocalCounter share_spent;    ///< permits of shares
};

/// State shared by the leasing stores of all reactors. Thread-safe; must outlive them.
class Leases {
 public:
  explicit Leases(const LeaseOptions& options) : options_(options) {}

  const LeaseOptions& options() const noexcept { return options_; }
  std::shared_ptr<LeaseMetrics> AddMetrics();
  std::vector<std::shared_ptr<LeaseMetrics>> metrics() const;

  /// Of all reactors, since the start.
  struct Totals {
    std::uint64_t keys = 0;
    std::int64_t held = 0;
    std::uint64_t local = 0;
    std::uint64_t asks = 0;
    std::uint64_t granted = 0;
    std::uint64_t lost = 0;
  };
  Totals Sum() const;

  /// weir_lease_*.
  void Collect(telemetry::TextWriter& out) const;

 private:
  const LeaseOptions options_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<LeaseMetrics>> metrics_;
};

}  // namespace weir::store::lease
