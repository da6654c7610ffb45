#pragma once

// A key's row, as the SQL stores keep it: an id, the states of the key under each algorithm that
// has been used for it, and the time from which it is equivalent to an absent row.
// docs/design/stores.md documents the bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/algorithms.h"
#include "weir/clock.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::store::sql {

/// A key of at most this many bytes is its row's id. A longer one is its first 224 bytes and the
/// SHA-256 of all: 256 bytes, which no short key has, so the two never meet.
inline constexpr std::size_t kMaxPlainKey = 255;
inline constexpr std::size_t kMaxRowId = 256;
inline constexpr std::size_t kIdPrefix = 224;

std::string RowId(std::string_view key);

/// The states of one key, decoded from a row's bytes. An empty text is a fresh key.
///
/// Not thread-safe, like any value.
class RowState {
 public:
  using Bytes = std::vector<std::uint8_t>;

  /// Checks everything: bytes from a database may come from anywhere. kInternal if Encode could not
  /// have produced them for this key, kAlreadyExists if they are another key's.
  static Result<RowState> Parse(std::string_view key, std::string_view bytes);

  /// Empty if nothing is charged under any algorithm.
  std::string Encode(std::string_view key) const;

  Bytes& operator[](Algorithm algorithm) noexcept { return states_[algorithm]; }
  void Clear() noexcept {
    for (Bytes& state : states_) state.clear();
  }

  /// The time from which this is equal to a fresh key; 0 if it already is.
  Nanos FreshAt() const noexcept;

 private:
  algorithm::PerAlgorithm<Bytes> states_;
};

/// What can be read from a row's bytes, or from the part of them that was fetched.
struct RowSummary {
  std::string key = {};                    ///< empty: a long one that the bytes do not contain
  std::vector<Algorithm> algorithms = {};  ///< under which it has a state
};
/// Checks only what it reads.
RowSummary Summarize(std::string_view id, std::string_view bytes);

}  // namespace weir::store::sql
