#pragma once

#include <cstddef>

namespace weir {

/// The bytes that many holders have together, against one bound. Not thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t most) noexcept : most_(most) {}

  /// One holder had `before` bytes and now has `after`. False: together they have too many.
  bool Change(std::size_t before, std::size_t after) noexcept {
    held_ = held_ - before + after;
    return held_ <= most_;
  }
  std::size_t held() const noexcept { return held_; }

 private:
  const std::size_t most_;
  std::size_t held_ = 0;
};

}  // namespace weir
