#pragma once

// The most frequent texts of a stream in fixed memory (the Space-Saving algorithm): a text without
// a counter takes the place of the smallest one and inherits its count as its possible
// error. So a count is never too small, it is too large by at most `error`, and a text that occurs
// more often than total / capacity times is always included.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weir::telemetry {

/// Not thread-safe.
class SpaceSaving {
 public:
  struct Entry {
    std::string text;
    std::uint64_t count = 0;  ///< never less than the true number
    std::uint64_t error = 0;  ///< by how much it may be too large
    std::uint32_t tag = 0;    ///< of its last occurrence
  };

  /// Requires capacity >= 1.
  explicit SpaceSaving(std::size_t capacity);

  void Add(std::string_view text, std::uint64_t weight, std::uint32_t tag = 0);
  void Clear();

  /// The entries, in no particular order.
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  const Entry* Find(std::string_view text) const;
  /// The most that a text which is not included may have occurred.
  std::uint64_t floor() const noexcept;

 private:
  std::size_t Smallest() const noexcept;

  std::size_t capacity_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> counts_;  // of entries_, contiguous for fast search
  std::unordered_map<std::string_view, std::size_t> index_;  // views of entries_' texts
};

}  // namespace weir::telemetry
