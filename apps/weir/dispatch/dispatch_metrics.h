#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "slots/time.h"
#include "telemetry/metrics.h"

namespace weir::app {

/// What a dispatcher has done so far. Each claimed event is delivered, retried, dead or left, or
/// still in hand.
///
/// Not thread-safe, like any value.
struct DispatchCounts {
  /// Upper bounds in seconds of how late events are.
  static constexpr std::array<double, 14> kLateBounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                         1,     2.5,  5,     15,   60,  300,  3600};

  std::uint64_t claimed = 0;
  std::uint64_t delivered = 0;
  std::uint64_t redelivered = 0;  ///< of those
  std::uint64_t retried = 0;
  std::uint64_t dead = 0;
  std::uint64_t left = 0;  ///< not tried: delivered by whichever claims it when its lease ends
  std::uint64_t lost = 0;  ///< of those that were tried: the lease ended before it was reported
  std::array<std::uint64_t, kLateBounds.size() + 1> late = {};
  slots::Millis late_millis = 0;  ///< of all together

  /// An event was delivered this long after its time.
  void Delivered(slots::Millis after);
};

/// The current state of a dispatcher.
struct DispatchStanding {
  DispatchCounts counts = {};
  std::size_t waiting = 0;  ///< claimed events whose time has not come
  std::size_t delivering = 0;
  std::size_t reporting = 0;  ///< ended, but not yet reported to the store
  bool target_up = true;
  bool store_up = false;
  std::map<std::string, bool> capped = {};  ///< by config: the last claim had to stop at the cap
};

/// weir_dispatch_*.
void Collect(const DispatchStanding& standing, telemetry::TextWriter& out);

}  // namespace weir::app
