#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weir {

/// Nanoseconds since the Unix epoch. Integers throughout: no drift, no rounding.
using Nanos = std::int64_t;

/// The time source of an Engine. Implementations must be thread-safe and should never go back; if
/// one does, no key is granted more because of it, as long as it was not dropped (Engine::Sweep).
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos Now() const noexcept = 0;
};

/// The machine's time: starts at the wall clock and from then on runs with the monotonic clock, so
/// a step of the wall clock (NTP, an operator) neither opens nor closes a limit.
///
/// Thread-safe. A thread never sees it go back; two threads may differ by less than a microsecond.
class SystemClock final : public Clock {
 public:
  /// The process's one instance, calibrated on first use (0.1 ms).
  static const SystemClock& Get() noexcept;

  Nanos Now() const noexcept override;

 private:
  SystemClock() noexcept;
  void Calibrate(std::uint64_t ticks, Nanos steady) const noexcept;

  Nanos offset_ns_ = 0;  // wall clock - monotonic clock, at the start
  [[maybe_unused]] Nanos base_ns_ = 0;
  [[maybe_unused]] std::uint64_t base_ticks_ = 0;
  // Nanoseconds per tick of the processor's counter, times 2^32; 0: the counter cannot be trusted.
  mutable std::atomic<std::uint64_t> scale_{0};
};

/// A clock that stands still until a test, a simulation or a replay advances it. Thread-safe.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Nanos start = 0) noexcept : now_(start) {}

  Nanos Now() const noexcept override { return now_.load(std::memory_order_acquire); }
  void Set(Nanos now) noexcept { now_.store(now, std::memory_order_release); }
  void Advance(std::chrono::nanoseconds by) noexcept {
    now_.fetch_add(by.count(), std::memory_order_acq_rel);
  }

 private:
  std::atomic<Nanos> now_;
};

}  // namespace weir
