#pragma once

// The most frequent texts of a stream in fixed memory (the Space-Saving algorithm): a text that is
// not among the counters takes the place of the smallest one and inherits its count as its possible
// error. So a count is never too small, it is too large by at most `error`, and a text that came
// more often than total / capacity times is always there.

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
    std::uint64_t count = 0;  ///< at least as often as it came
    std::uint64_t error = 0;  ///< at most so much too large
    std::uint32_t tag = 0;    ///< given with its last occurrence
  };

  /// Requires capacity >= 1.
  explicit SpaceSaving(std::size_t capacity);

  void Add(std::string_view text, std::uint64_t weight, std::uint32_t tag = 0);
  void Clear();

  /// The entries as they are, in no order.
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  const Entry* Find(std::string_view text) const;
  /// How often a text that is not here may have come at most.
  std::uint64_t floor() const noexcept;

 private:
  std::size_t Smallest() const noexcept;

  std::size_t capacity_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> counts_;  // of entries_, close together to be searched
  std::unordered_map<std::string_view, std::size_t> index_;  // views of entries_' texts
};

}  // namespace weir::telemetry
