#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <random>

#include "weir/clock.h"

namespace weir::store::guard {

enum class BreakerState : std::uint8_t {
  kClosed,    ///< calls go to the store
  kHalfOpen,  ///< one probe is under way; all other calls fail immediately
  kOpen,      ///< calls fail immediately
};

struct BreakerOptions {
  /// Opens after this many failures in a row,
  std::uint32_t failures = 5;
  /// or when this part of at least `least_calls` calls of the last second failed.
  double ratio = 0.5;
  std::uint32_t least_calls = 20;
  /// From opening to the first probe; doubled after each probe that fails, up to `longest_wait`.
  /// Together with a call's timeout, `longest_wait` must stay below a second: that is how soon
  /// after its return the store decides again.
  std::chrono::milliseconds first_wait{50};
  std::chrono::milliseconds longest_wait{400};
  /// For the random part of the waits. 0: chosen at random.
  std::uint32_t seed = 0;
};

/// Stops calls to a store that does not respond, so that no caller waits for a timeout that is
/// certain. Only a probe (Prober) closes it again.
///
/// Thread-safe: the calls of all reactors share one.
class Breaker {
 public:
  using OnChange = std::function<void(BreakerState)>;

  /// `clock` null: SystemClock. `on_change` runs on the thread that caused the change.
  explicit Breaker(const BreakerOptions& options, const Clock* clock = nullptr,
                   OnChange on_change = {});

  BreakerState state() const noexcept { return state_.load(std::memory_order_acquire); }
  bool closed() const noexcept { return state() == BreakerState::kClosed; }

  /// The number of the current closed period. A call notes it when it begins, so that its result is
  /// not counted against the store if the breaker has opened and closed again in between.
  std::uint64_t period() const noexcept { return period_.load(std::memory_order_acquire); }
  void Succeeded(std::uint64_t period) noexcept;
  void Failed(std::uint64_t period);

  /// For the prober: true if a probe is due; the caller must then make it and report the result.
  bool ClaimProbe();
  void ProbeSucceeded();
  void ProbeFailed();

 private:
  void SetLocked(BreakerState state);
  void OpenLocked(Nanos now);
  /// Requires mutex_.
  Nanos Jittered(std::chrono::milliseconds wait);

  const BreakerOptions options_;
  const Clock& clock_;
  const OnChange on_change_;
  std::atomic<BreakerState> state_{BreakerState::kClosed};
  std::atomic<std::uint64_t> period_{1};
  std::atomic<std::uint32_t> in_a_row_{0};
  std::atomic<std::uint64_t> successes_{0};

  std::mutex mutex_;
  Nanos second_began_ = 0;
  std::uint64_t successes_before_ = 0;
  std::uint64_t failures_ = 0;  // in this second
  std::chrono::milliseconds wait_;
  Nanos next_probe_ = 0;
  std::minstd_rand random_;
};

}  // namespace weir::store::guard
