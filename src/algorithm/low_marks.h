#pragma once

// What a token bucket remembers for its open reservations, behind its 12 bytes: how low its debt
// has been since each of them was charged. Had less been charged, the debt would be lower by the
// difference, or by that low if it is less: docs/design/reservations.md has the proof.
//
//   12  i64  until: no reservation is open from then on
//   20  i64  floor: charges of this stamp and before get nothing back
//   28       at most kMostMarks marks: i64 stamp, i64 low, i64 open; stamps and lows increase
//
// A mark speaks for the charges after the mark before it, up to its stamp: so low the debt has been
// since, and no more than `open` of it can come back by them. All of these charges and those before
// them together get no more back than the low, which falls by what they get. A new low replaces all
// marks above it; a mark whose low is more than can come back anyway is left out.
//
// Nanoseconds are whole: lows are rounded down and what is open up. So too little may come back, by
// a few of them, never too much.

#include <cstdint>
#include <span>

#include "algorithm/state.h"
#include "algorithm/token_bucket.h"
#include "weir/clock.h"

namespace weir::algorithm::low_marks {

inline constexpr std::uint32_t kMostMarks = 16;
inline constexpr std::uint32_t kHeadBytes = 16;
inline constexpr std::uint32_t kMarkBytes = 24;
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

/// A reservation of that `time` is charged at `now`, and may be settled before `until`. Returns its
/// stamp, which no other charge of the key has. Requires the capacity, a bucket that is written,
/// and that Lower was called for the charge.
Nanos Add(State& state, Nanos now, token_bucket::Span time, Nanos until) noexcept;

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
