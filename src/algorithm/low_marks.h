#pragma once

// What a token bucket remembers for its open reservations, after its 12 bytes: how low its debt has
// been since each of them was charged. Had less been charged, the debt would be lower by the
// difference, or by that low if it is less: docs/design/reservations.md has the proof.
//
//   12  i64  until: no reservation is open from this time on
//   20  i64  floor: charges of this stamp and before get nothing back
//   28       at most kMostMarks marks: i64 stamp, i64 low, i64 open; stamps and lows increase
//
// A mark covers the charges after the previous mark, up to its own stamp: the debt has been this
// low since, and at most `open` of it can be returned by them. All of these charges and those
// before them together get back no more than the low, which falls by what they get. A new low
// replaces all marks above it; a mark whose low is more than can be returned anyway is left out.
//
// Only whole nanoseconds are kept: lows are rounded down and `open` up. So a few nanoseconds too
// little may be returned, never too much.

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

/// Whether a token bucket's bytes have anything after the bucket.
inline bool Has(const State& state) noexcept { return state.size > kTokenBucketBytes; }

/// The capacity that Add needs.
std::uint32_t CapacityForAdd(const State& state) noexcept;

/// The debt is or was this low at `now`: for every charge its debt just before it, for every return
/// the debt just after it. Does nothing to a bucket without marks, and drops marks that can no
/// longer be used.
void Lower(State& state, Nanos now, token_bucket::Span debt) noexcept;

/// A reservation of that `time` is charged at `now`, and may be settled before `until`. Returns its
/// stamp, which no other charge of the key has. Requires the capacity, a bucket that is written,
/// and that Lower was called for the charge.
Nanos Add(State& state, Nanos now, token_bucket::Span time, Nanos until) noexcept;

/// How low the debt has been since the charge of that stamp, not counting now; zero if
/// unknown.
token_bucket::Span LowSince(const State& state, Nanos now, Nanos stamp) noexcept;

/// `freed` was returned for the charge of that stamp, which leaves `debt`. Requires freed <=
/// LowSince.
void Free(State& state, Nanos now, Nanos stamp, token_bucket::Span freed,
          token_bucket::Span debt) noexcept;

/// True if the bytes after the bucket's, if any, are valid.
bool Valid(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace weir::algorithm::low_marks
