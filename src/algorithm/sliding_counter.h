#pragma once

#include <cstdint>
#include <span>

#include "algorithm/state.h"

namespace weir::algorithm {

/// As the sliding log, approximated in N buckets of width w = ceil(window / N), which begin at
/// multiples of w since the Unix epoch. Used permits are the counts of the newest N buckets, the
/// current one included, and of the bucket before them the share that has not slid out yet, rounded
/// up: ceil(count * (w - elapsed) / w), where elapsed is the time since the current bucket began.
/// Time never goes back for a key before the beginning of the bucket of its latest grant.
///
/// Bytes (little-endian): i64 index of the newest bucket (time / w, rounded down), i64 w, u16 N,
/// then the counts as varints, newest first, without trailing zeros.
namespace sliding_counter {

std::uint32_t CapacityForAcquire(const Quota& quota, const State& state) noexcept;
Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept;
Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
/// Returns permits of a lease that was charged `at`, from the bucket of that time.
void Return(const Quota& quota, State& state, Nanos at, std::int64_t count) noexcept;
Nanos FreshAt(const State& state) noexcept;
bool Valid(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace sliding_counter

}  // namespace weir::algorithm
