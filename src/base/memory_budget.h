#pragma once

#include <algorithm>
#include <cstddef>

namespace weir {

/// Bounds the bytes that many holders have together. Not thread-safe.
class MemoryBudget {
 public:
  /// What a holder may have in any case, unless `fair` is less.
  static constexpr std::size_t kLeast = std::size_t{64} << 10U;

  explicit MemoryBudget(std::size_t most) noexcept : most_(most) {}

  /// One holder went from `before` to `after` bytes. False: together they have too many.
  bool Change(std::size_t before, std::size_t after) noexcept {
    held_ = held_ - before + after;
    holders_ = holders_ - (before == 0 ? 0 : 1) + (after == 0 ? 0 : 1);
    return held_ <= most_;
  }
  std::size_t held() const noexcept { return held_; }

  /// What one holder may keep when all together have too many: `fair` bytes, but no more than an
  /// equal part if there are many holders. Thousands of them with `fair` bytes each would defeat
  /// the bound.
  std::size_t Share(std::size_t fair) const noexcept {
    const std::size_t part = most_ / std::max<std::size_t>(holders_, 1);
    return std::min(fair, std::max(part, kLeast));
  }

 private:
  const std::size_t most_;
  std::size_t held_ = 0;
  std::size_t holders_ = 0;
};

}  // namespace weir
