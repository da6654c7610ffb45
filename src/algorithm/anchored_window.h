#pragma once

#include <cstdint>

#include "algorithm/counted_window.h"

namespace weir::algorithm {

/// `limit` permits in a window that begins with a key's first charge and ends `window` later; the
/// next charge after that begins another one. A window whose charges were all returned does not
/// count: the next charge begins a new one. A clock that goes back finds the window it left, which
/// stays in force until its end.
struct AnchoredWindow : CountedWindow<AnchoredWindow> {
  static WindowCount Current(const Quota& quota, const State& state, Nanos now) noexcept;
  /// Returns permits of the window that ends at `end`, if it is in force.
  static void Return(const Quota& quota, State& state, Nanos now, Nanos end,
                     std::int64_t count) noexcept;
};

}  // namespace weir::algorithm
