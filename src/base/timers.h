#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace weir {

/// Runs things later. The service uses those of a reactor; a simulation has its own, in virtual
/// time.
///
/// Thread safety: belongs to one thread, on which everything runs.
class Timers {
 public:
  using Id = std::uint64_t;  ///< never 0

  virtual ~Timers() = default;

  /// Never runs it before this returns.
  virtual Id After(std::chrono::nanoseconds wait, std::function<void()> run) = 0;
  /// It will not run any more. Nothing happens if it has, or for 0.
  virtual void Cancel(Id id) = 0;
};

}  // namespace weir
