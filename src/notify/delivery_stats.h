#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "notify/notify.h"
#include "notify/sender_figures.h"
#include "telemetry/metrics.h"

namespace weir::notify {

/// Statistics of a sender: results of deliveries, retries, and the time from accepting a message to
/// its delivery.
///
/// Thread-safe.
class DeliveryStats {
 public:
  enum Result : std::size_t { kDelivered, kDead, kDuplicate, kDelayed, kDropped, kResults };

  void Count(Result result) noexcept { results_[result].fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t count(Result result) const noexcept {
    return results_[result].load(std::memory_order_relaxed);
  }
  /// Counts a failed attempt that another will follow.
  void Retry() noexcept { retries_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t retries() const noexcept { return retries_.load(std::memory_order_relaxed); }
  /// Records how long after its acceptance a message was delivered.
  void Took(Micros time) noexcept;
  /// All figures except the lag.
  SenderFigures figures() const noexcept;
  /// Sets the acceptance time of the oldest message in progress, or 0 if there is none.
  void SetOldest(Micros accepted_at) noexcept {
    oldest_.store(accepted_at, std::memory_order_relaxed);
  }

  /// weir_notify_deliveries_total, weir_notify_retries_total, weir_notify_delivery_seconds,
  /// weir_notify_oldest_seconds.
  void Collect(telemetry::TextWriter& out, Micros now) const;

 private:
  static constexpr std::array<double, 12> kBounds = {0.01, 0.05, 0.25, 1,   2.5,  5,
                                                     10,   30,   60,   300, 1800, 7200};

  std::array<std::atomic<std::uint64_t>, kResults> results_{};
  std::atomic<std::uint64_t> retries_{0};
  std::array<std::atomic<std::uint64_t>, kBounds.size() + 1> took_{};
  std::atomic<std::uint64_t> took_micros_{0};
  std::atomic<Micros> oldest_{0};
};

}  // namespace weir::notify
