#pragma once

#include <algorithm>
#include <limits>

#include "weir/clock.h"
#include "weir/quota.h"

namespace weir::algorithm {

/// The times that steps work with: about the years 1778 to 2162. A clock beyond them is clamped to
/// the edge, so that adding or subtracting any window cannot overflow. The margin is for leases
/// issued in the same nanosecond, which follow each other by one.
inline constexpr Nanos kLatest =
    std::numeric_limits<Nanos>::max() - kMaxWindow.count() - 4 * kMaxLimit;
inline constexpr Nanos kEarliest = -kLatest;

inline Nanos ClampTime(Nanos now) noexcept { return std::clamp(now, kEarliest, kLatest); }

}  // namespace weir::algorithm
