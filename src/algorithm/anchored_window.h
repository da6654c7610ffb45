#pragma once

#include <cstdint>
#include <span>

#include "algorithm/state.h"

namespace weir::algorithm {

/// `limit` permits in a window that begins with a key's first charge and ends `window` later; the
/// next charge after that begins another one. A window whose charges were all given back is none:
/// the next charge begins it again. A clock that goes back finds the window it left, which stays in
/// force until its end.
///
/// Bytes (little-endian): i64 end of the window in ns, i64 permits granted in it.
namespace anchored_window {

inline constexpr std::uint32_t kBytes = 16;

Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept;
Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
/// Gives back permits that were charged `at`, if that was in the window in force.
void Return(const Quota& quota, State& state, Nanos now, Nanos at, std::int64_t count) noexcept;
Nanos FreshAt(const State& state) noexcept;
bool Valid(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace anchored_window

}  // namespace weir::algorithm
