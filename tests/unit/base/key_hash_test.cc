#include "base/key_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace weir {
namespace {

std::pair<std::uint64_t, std::uint64_t> Of(const KeyHash& hash, std::string_view key) {
  const Hash128 h = hash(key);
  return {h.high, h.low};
}

TEST(KeyHash, IsAFunctionOfTheKeyAndTheSecret) {
  const KeyHash one(KeyHash::Draw());
  const KeyHash same(one.secret());
  const KeyHash other(KeyHash::Draw());
  EXPECT_EQ(Of(one, "user-123"), Of(same, "user-123"));
  EXPECT_NE(Of(one, "user-123"), Of(other, "user-123"));
}

// A multilinear hash calculated by hand: with b = 0 and all a_i = 2^64 the sum is the plain sum of
// the words (length, then the bytes little-endian, eight at a time) in the upper half.
TEST(KeyHash, SumsLengthAndWordsUnderTheirMultipliers) {
  KeyHash::Secret secret{};
  for (std::size_t i = 2; i < secret.piece.size(); ++i) secret.piece[i] = {1, 0};
  const KeyHash hash(secret);
  EXPECT_EQ(hash("").high, 0U);
  EXPECT_EQ(hash("a").high, 1U + 'a');
  EXPECT_EQ(hash("ab").high, 2U + 'a' + 'b' * 256U);
  EXPECT_EQ(hash(std::string_view("\x01\0\0\0\0\0\0\0\x02", 9)).high, 9U + 1U + 2U);
  EXPECT_EQ(hash("abcdef").low, 6U + 0x666564636261U);
}

// The lower 64 bits carry into the half that is kept: with b = 2^64 - 1, a_0 = 2 for the length and
// a_1 = 2^63 + 3 * 2^64 for the word, the key "\x04" sums to
// 2^64 - 1 + 2 + 4 * 2^63 + 12 * 2^64 = 15 * 2^64 + 1.
TEST(KeyHash, CarriesFromTheLowerHalfOfTheSum) {
  KeyHash::Secret secret{};
  secret.piece[0] = {0, ~std::uint64_t{0}};
  secret.piece[2] = {0, 2};
  secret.piece[4] = {3, std::uint64_t{1} << 63};
  const KeyHash hash(secret);
  EXPECT_EQ(hash("\x04").high, 15U);
  EXPECT_EQ(hash("\x04").low, 0U);
}

TEST(KeyHash, TellsApartKeysThatDifferOnlyInLengthOrOneBit) {
  const KeyHash hash(KeyHash::Draw());
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  // Zeros of every length around the piece and the run boundaries (256 bytes, 64 pieces).
  std::size_t keys = 0;
  for (std::size_t size = 0; size <= 1040; ++size, ++keys)
    seen.insert(Of(hash, std::string(size, '\0')));
  for (std::size_t size = 16'380; size <= 16'400; ++size, ++keys) {
    seen.insert(Of(hash, std::string(size, '\0')));
  }
  for (std::size_t size : {1U, 7U, 8U, 9U, 255U, 256U, 257U, 20'000U}) {
    for (std::size_t bit = 0; bit < size * 8; bit += 1 + size / 64) {
      std::string key(size, '\0');
      key[bit / 8] = static_cast<char>(1 << (bit % 8));
      seen.insert(Of(hash, key));
      ++keys;
    }
  }
  EXPECT_EQ(seen.size(), keys);
}

TEST(KeyHash, SpreadsCountedKeysEvenly) {
  const KeyHash hash(KeyHash::Draw());
  constexpr int kKeys = 64'000;
  constexpr int kCells = 64;
  std::array<int, kCells> cells{};
  for (int i = 0; i < kKeys; ++i) {
    ++cells[hash("user-" + std::to_string(i)).high >> 58];
  }
  // Expected 1,000 per cell. The hash is pairwise independent, so a cell's standard deviation
  // is 31.4; a deviation of ten is practically impossible for all 64 cells (Chebyshev alone gives
  // 64/100, the true tail is far below it).
  for (const int count : cells) EXPECT_NEAR(count, kKeys / kCells, 314);
}

}  // namespace
}  // namespace weir
