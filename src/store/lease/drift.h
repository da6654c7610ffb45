#pragma once

#include "weir/clock.h"

namespace weir::store::lease {

/// How far the clocks of a node and of the store may drift apart: a thousandth.
inline constexpr Nanos kDriftParts = 1000;

/// The longest time by a node's clock during which the store's clock has certainly not advanced
/// more than `span`.
constexpr Nanos NodeTime(Nanos span) noexcept { return span - span / (kDriftParts + 1) - 1; }

}  // namespace weir::store::lease
