#pragma once

// How keys are laid out in memory. A bucket is two cache lines: a header of eight bytes and five
// slots of 24. A slot holds a 96-bit fingerprint and either a token bucket's state itself (the
// common case: 96 bits) or a pointer to a Box with any other state and, if the engine keeps it, the
// key's text. A token bucket with reservations has more state than fits, and a Box from then on.
// The texts of keys without a Box lie beside the table, where a check never looks.

#include <bit>
#include <cstdint>

#include "weir/clock.h"
#include "weir/quota.h"

namespace weir::engine {

/// Represents a key and an algorithm. It also determines where the key lives, see Shard.
struct Fingerprint {
  std::uint64_t high;
  std::uint32_t low;

  /// The same key's fingerprint under an algorithm; its shard and bucket stay the same.
  Fingerprint Under(Algorithm algorithm) const noexcept {
    return {high, low ^ (static_cast<std::uint32_t>(algorithm) * 0x9E3779B1U)};
  }
  /// Where the key lives: its low half picks the shard, its high half the bucket. The hash behind
  /// `high` is linear in the key's words, so without this sequential keys would cluster in the same
  /// places.
  std::uint64_t Spread() const noexcept { return (high ^ high >> 32) * 0x9E3779B97F4A7C15ULL; }
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

struct Slot {
  std::uint64_t high = 0;
  std::uint32_t low = 0;
  /// Inline: TokenBucketState::frac. Boxed: the time the state is fresh, in CoarseTime units.
  std::uint32_t extra = 0;
  /// Inline: TokenBucketState::full_at. Boxed: the Box*.
  std::int64_t word = 0;

  Fingerprint fingerprint() const noexcept { return {high, low}; }
};

struct alignas(128) Bucket {
  static constexpr int kSlots = 5;

  /// A slot's stamp has this bit if its key is listed in Shard::changes.
  static constexpr std::uint8_t kChanged = 0x80;
  static constexpr std::uint8_t kEpoch = 0x7F;

  std::uint8_t stamp[kSlots] = {};  ///< the shard's epoch when the slot was last used, and kChanged
  std::uint8_t used = 0;            ///< bit i: slot i holds a key
  std::uint8_t boxed = 0;           ///< bit i: slot i holds a Box*
  /// Keys that live in a later bucket because this one was full; a search may stop where it is 0.
  /// At 255 it stays: searches then go on a little longer than necessary.
  std::uint8_t overflow = 0;
  Slot slots[kSlots];

  /// The slot whose fingerprint has this `high`, if any: the first candidate, or else the last
  /// slot. Compares all of them: a branch where the search ends would often be mispredicted.
  int Likely(std::uint64_t high) const noexcept {
    std::uint32_t bits = 1U << (kSlots - 1);
    for (std::uint32_t i = 0; i < kSlots - 1; ++i) {
      bits |= static_cast<std::uint32_t>(slots[i].high == high) << i;
    }
    return std::countr_zero(bits);
  }
  bool Has(int i) const noexcept { return (used >> i & 1) != 0; }
  bool HasInline(int i) const noexcept { return ((used & ~boxed) >> i & 1) != 0; }
  bool IsBoxed(int i) const noexcept { return (boxed >> i & 1) != 0; }
};
static_assert(sizeof(Slot) == 24 && sizeof(Bucket) == 128);

/// Units of 2^32 ns (4.3 s) since the epoch: enough to tell whether most keys are fresh without
/// reading their box.
inline std::uint32_t CoarseTime(Nanos t) noexcept {
  return t <= 0 ? 0 : static_cast<std::uint32_t>(t >> 32);
}

}  // namespace weir::engine
