#pragma once

#include <cstdint>
#include <span>

#include "algorithm/state.h"

namespace weir::algorithm {

/// `limit` permits in each window; windows begin at multiples of the window since the Unix epoch.
/// The window of the latest charge stays in force while the clock is before its end, so a clock
/// that goes back finds the count it left.
///
/// Bytes (little-endian): i64 end of the window in ns, i64 permits granted in it.
namespace fixed_window {

inline constexpr std::uint32_t kBytes = 16;

Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept;
Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
/// Gives back permits of a lease that was charged `at`, if that was in the window now in force.
void Return(const Quota& quota, State& state, Nanos now, Nanos at, std::int64_t count) noexcept;
Nanos FreshAt(const State& state) noexcept;
bool Valid(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace fixed_window

}  // namespace weir::algorithm
