#pragma once

#include <cstdint>

#include "algorithm/counted_window.h"

namespace weir::algorithm {

/// `limit` permits in each window; windows begin at multiples of the window since the Unix epoch.
/// The window of the latest charge stays in force while the clock is before its end, so a clock
/// that goes back finds the count it left.
struct FixedWindow : CountedWindow<FixedWindow> {
  static WindowCount Current(const Quota& quota, const State& state, Nanos now) noexcept;
  /// Returns permits of a lease that was charged `at`, if that was in the window now in force.
  static void Return(const Quota& quota, State& state, Nanos now, Nanos at,
                     std::int64_t count) noexcept;
};

}  // namespace weir::algorithm
