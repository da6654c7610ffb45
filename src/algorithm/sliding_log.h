#pragma once

#include <cstdint>
#include <span>

#include "algorithm/state.h"

namespace weir::algorithm {

/// At most `limit` permits in any span of length `window`, exactly: every grant is remembered and
/// counts while its time > now - window. Time never goes back for a key: a clock before its newest
/// grant counts as that grant's time.
///
/// Bytes: those of charge_log.h, one entry per time of a grant; `mark` is the window.
namespace sliding_log {

Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept;
Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Nanos FreshAt(const State& state) noexcept;
bool Valid(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace sliding_log

}  // namespace weir::algorithm
