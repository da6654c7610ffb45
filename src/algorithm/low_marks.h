#pragma once

// What a token bucket remembers for its open reservations, behind its 12 bytes: for each of them
// how low the debt has been since it was charged. Had less been charged, the debt would be lower by
// the difference, or by that low if it is less: docs/design/reservations.md has the proof.
//
//   12  i64  until: no reservation is open from then on
//   20  i64  floor: charges of this stamp and before get nothing back
//   28       at most kMostMarks marks (i64 stamp, i64 low), both strictly increasing
//
// A mark says how low the debt has been since the charge of its stamp, and since those before it
// that no earlier mark speaks for. What lies further back has seen at least the same lows, so lows
// never fall from mark to mark, and a new low replaces all marks above it. Lows are whole
// nanoseconds, rounded down: too little may come back, by less than one, never too much.

#include <cstdint>
#include <span>

#include "algorithm/state.h"
#include "algorithm/token_bucket.h"
#include "weir/clock.h"

namespace weir::algorithm::low_marks {

inline constexpr std::uint32_t kMostMarks = 16;
inline constexpr std::uint32_t kHeadBytes = 16;
inline constexpr std::uint32_t kMarkBytes = 16;
inline constexpr std::uint32_t kMostBytes =
    kTokenBucketBytes + kHeadBytes + kMostMarks * kMarkBytes;

/// Whether a token bucket's bytes have anything behind the bucket.
inline bool Has(const State& state) noexcept { return state.size > kTokenBucketBytes; }

/// The capacity that Add needs.
std::uint32_t CapacityForAdd(const State& state) noexcept;

/// The debt is or was this low at `now`: for every charge its debt just before it, for everything
/// given back the debt just after it. Does nothing to a bucket without marks, and drops those that
/// nobody can ask for any more.
void Lower(State& state, Nanos now, token_bucket::Span debt) noexcept;

/// A reservation is charged at `now`, and may be settled before `until`. Returns its stamp, which
/// no other charge of the key has. Requires the capacity, a bucket that is written, and that Lower
/// was called for the charge.
Nanos Add(State& state, Nanos now, Nanos until) noexcept;

/// How low the debt has been since the charge of that stamp, but for now; nothing if that is not
/// known.
token_bucket::Span LowSince(const State& state, Nanos now, Nanos stamp) noexcept;

/// Of the charge of that stamp `freed` was given back, which leaves `debt`. Requires freed <=
/// LowSince.
void Free(State& state, Nanos now, Nanos stamp, token_bucket::Span freed,
          token_bucket::Span debt) noexcept;

/// True of what stands behind the bucket's bytes, if that is anything.
bool Valid(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace weir::algorithm::low_marks
