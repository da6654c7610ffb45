#pragma once

// Checks that arrived together, with the memory their requests point into.

#include <cstddef>
#include <span>
#include <vector>

#include "base/arena.h"
#include "limiter/limiter.h"

namespace weir::http {

/// Reused from batch to batch, so that in steady state nothing is allocated. Not thread-safe.
class CheckBatch {
 public:
  /// Appends a fresh check, for a door to fill. Its request may point into arena().
  limiter::Check& Add() {
    if (used_ == checks_.size()) checks_.emplace_back();
    limiter::Check& check = checks_[used_++];
    check.Reset(store::Op::kCharge, {});
    return check;
  }

  /// Drops the checks from `size` on.
  void Shrink(std::size_t size) noexcept { used_ = size; }

  std::span<limiter::Check> checks() noexcept { return {checks_.data(), used_}; }
  std::size_t size() const noexcept { return used_; }
  Arena& arena() noexcept { return arena_; }

  /// Forgets everything; a batch that was unusually large frees its memory.
  void Clear() {
    constexpr std::size_t kKept = 64;
    if (checks_.size() > kKept) {
      checks_.resize(kKept);
      checks_.shrink_to_fit();
    }
    used_ = 0;
    arena_.Clear();
  }

 private:
  std::vector<limiter::Check> checks_;
  std::size_t used_ = 0;
  Arena arena_;
};

}  // namespace weir::http
