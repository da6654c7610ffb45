#pragma once

// One key's state under any algorithm, as bytes: as stored by the engine behind a slot, by a
// snapshot, and by a SQL store in a row. Each algorithm's header documents its bytes, and
// docs/design/state-format.md all of them. An empty State is a fresh key. The functions below
// choose the algorithm by quota.algorithm().

#include <cstdint>
#include <span>

#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/quota.h"

namespace weir::algorithm {

/// A byte buffer of fixed capacity that the caller owns and a step may fill. Not thread-safe.
struct State {
  std::uint8_t* data = nullptr;
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;

  bool empty() const noexcept { return size == 0; }
};

/// The capacity that the next Acquire or Overdraw may need: State::capacity must be at least this
/// much.
std::uint32_t CapacityForAcquire(const Quota& quota, const State& state) noexcept;

/// The verdict that Acquire would give; remaining and reset_after are those of the key as it
/// is.
Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept;

/// Charges `cost` (0 or less = only read) at `now`. Only a granted charge changes the state.
Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;

/// Charges `cost` (0 or less = only read) whether it fits or not, and returns the key's state
/// afterwards: kLimited while it is in debt (more than `limit` is used), with the time until it is
/// not. The total is bounded: kMaxLimit permits, or for a token bucket what flows in during
/// kMaxWindow. A concurrency quota cannot be in debt: nothing is charged to it.
Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;

/// Returns up to `cost` permits, the latest first. Never needs more capacity than the state has.
Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;

/// Concurrency: releases what `lease` names; false if it is not held (any more).
bool Release(const Quota& quota, State& state, Nanos now, std::int64_t lease) noexcept;

/// The time from which the state is equivalent to a fresh one for the windows it was charged with
/// (a longer one may restart then); Nanos min for an empty state. Needs no quota.
Nanos FreshAt(Algorithm algorithm, const State& state) noexcept;

/// True if the bytes are a state that Acquire could have produced. Bytes from disk or a database
/// must pass this before any other call uses them.
bool Valid(Algorithm algorithm, std::span<const std::uint8_t> bytes) noexcept;

}  // namespace weir::algorithm
