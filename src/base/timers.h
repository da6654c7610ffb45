#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace weir {

/// Runs callbacks later. The service uses a reactor's; a simulation has its own, in virtual
/// time.
///
/// Thread safety: belongs to one thread, on which all callbacks run.
class Timers {
 public:
  using Id = std::uint64_t;  ///< never 0

  virtual ~Timers() = default;

  /// Runs `run` once after `wait`, never before this returns.
  virtual Id After(std::chrono::nanoseconds wait, std::function<void()> run) = 0;
  /// Cancels it. No effect if it has already run, or for 0.
  virtual void Cancel(Id id) = 0;
};

}  // namespace weir
