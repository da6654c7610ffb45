#pragma once

// Window arithmetic: pure, integers only. Windows begin at multiples of their size since the epoch.

#include <algorithm>
#include <cstdint>
#include <span>

#include "slots/slot.h"

namespace weir::slots {

constexpr Millis WindowOf(Millis instant, Millis size) noexcept { return instant - instant % size; }

/// floor(max × remaining / size): the capacity of the first window for an event requested for
/// `requested`, which can use only the rest of it. Cannot overflow: kMaxPerWindow × kMaxWindowSize
/// < 2^63.
constexpr std::int64_t FirstWindowCapacity(std::int64_t max, Millis requested,
                                           Millis size) noexcept {
  return max * (size - requested % size) / size;
}

/// A time in the window at or after `requested`, uniform for a uniform `random`.
constexpr Millis ScheduledIn(Millis window, Millis size, Millis requested,
                             std::int64_t random) noexcept {
  const Millis earliest = std::max(window, requested);
  return earliest + random % (window + size - earliest);
}

/// The latest opening before the window's end, if later than `earliest`: the moment from which
/// events of this window may be executed.
constexpr Millis OpenFrom(std::span<const OpenTime> open, Millis window, Millis size,
                          Millis earliest) noexcept {
  for (const OpenTime& time : open) {
    if (time.from < window + size) earliest = std::max(earliest, time.from);
  }
  return earliest;
}

/// floor(capacity × weight / total), but at least one place: a small weight must not starve.
constexpr std::int64_t ShareOf(std::int64_t capacity, std::int64_t weight,
                               std::int64_t total) noexcept {
  return std::max<std::int64_t>(1, capacity * weight / total);
}

}  // namespace weir::slots
