#pragma once

// A keyed hash with a proof. Each 64-bit half of the result is a multilinear hash
// (b + sum a_i * m_i mod 2^128) >> 64 with random 128-bit a_i, which is strongly universal: without
// knowing the a_i, no one can find two keys that collide with probability above 2^-64 per half,
// and the halves are independent. So 96 kept bits collide with 2^-96 per pair of keys, whatever the
// keys. Keys above 256 bytes are hashed in pieces whose digests are hashed again under other a_i.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/int128.h"

namespace weir {

/// 128 bits of hash.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
};

/// A hash function drawn at random when constructed. Immutable, so thread-safe.
class KeyHash {
 public:
  static constexpr std::size_t kPieceBytes = 256;
  static constexpr std::size_t kPieceWords = kPieceBytes / 8 + 1;  // and the length
  static constexpr std::size_t kDigests = 64;                      // pieces hashed together
  static constexpr std::size_t kDigestWords = 2 * kDigests + 3;  // a carried digest and the length
  struct Multiplier {
    std::uint64_t high;
    std::uint64_t low;
  };
  /// All of its randomness; a snapshot stores it so that its keys can be found again.
  struct Secret {
    std::array<Multiplier, 2 * (kPieceWords + 1)> piece;
    std::array<Multiplier, 2 * (kDigestWords + 1)> digest;
  };

  /// Draws a secret from the system's source of randomness.
  static Secret Draw();

  explicit KeyHash(const Secret& secret) : secret_(secret) {}

  const Secret& secret() const noexcept { return secret_; }

  Hash128 operator()(std::string_view key) const noexcept {
    return key.size() <= kPieceBytes ? HashPiece(key) : HashLong(key);
  }

 private:
  /// Sums words under a table of multipliers that alternates between the two halves.
  class Sum {
   public:
    explicit Sum(const Multiplier* table) noexcept
        : next_(table + 2), high_(table[0]), low_(table[1]) {}

    void Add(std::uint64_t word) noexcept {
      high_.Add(next_[0], word);
      low_.Add(next_[1], word);
      next_ += 2;
    }
    Hash128 Finish() const noexcept { return {high_.Top(), low_.Top()}; }

   private:
    /// One half's sum mod 2^128. Terms without lower 64 bits are summed separately, which avoids
    /// carries.
    class Half {
     public:
      explicit Half(const Multiplier& start) noexcept : sum_(start.low), top_(start.high) {}

      void Add(const Multiplier& m, std::uint64_t word) noexcept {
        sum_ += static_cast<UInt128>(m.low) * word;
        top_ += m.high * word;
      }
      std::uint64_t Top() const noexcept { return static_cast<std::uint64_t>(sum_ >> 64) + top_; }

     private:
      UInt128 sum_;
      std::uint64_t top_;
    };

    const Multiplier* next_;
    Half high_;
    Half low_;
  };

  Hash128 HashPiece(std::string_view piece) const noexcept {
    Sum sum(secret_.piece.data());
    const char* at = piece.data();
    std::size_t left = piece.size();
    sum.Add(left);
    for (; left >= 8; at += 8, left -= 8) sum.Add(Load(at));
    if (left != 0) sum.Add(LoadTail(at, left));
    return sum.Finish();
  }

  Hash128 HashLong(std::string_view key) const noexcept;

  static std::uint64_t Load(const char* at) noexcept {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    return word;
  }
  static std::uint64_t LoadTail(const char* at, std::size_t left) noexcept {
    std::uint64_t word = 0;
    if (left >= 4) {
      std::uint32_t first;
      std::uint32_t last;
      std::memcpy(&first, at, 4);
      std::memcpy(&last, at + left - 4, 4);
      word = first | static_cast<std::uint64_t>(last) << (8 * (left - 4));
    } else {
      for (std::size_t i = 0; i < left; ++i) {
        word |= static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])) << (8 * i);
      }
    }
    return word;
  }

  Secret secret_;
};

}  // namespace weir
