#pragma once

#include <cstdint>
#include <span>

#include "algorithm/state.h"

namespace weir::algorithm {

/// `limit` permits in flight. A grant is a lease: it ends with Release, or by itself at its expiry,
/// max(now + lease, latest expiry + 1). No two leases of a key expire at the same time, so the
/// expiry is also the lease's name, and one that was released or has expired cannot be released
/// again. Time never goes back for a key: a clock before its latest grant counts as that grant's
/// time.
///
/// Bytes: those of charge_log.h, one entry per lease, its time the expiry; `mark` is the time of
/// the latest grant. At most kMaxLogEntries leases are in flight, whatever the limit.
namespace concurrency {

Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept;
Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
bool Release(State& state, Nanos now, std::int64_t lease) noexcept;
Nanos FreshAt(const State& state) noexcept;
bool Valid(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace concurrency

}  // namespace weir::algorithm
