#pragma once

#include <cstdint>

#include "weir/quota.h"

namespace weir {

/// Gives the token bucket's step access to what a Quota has precomputed for it alone.
struct QuotaAccess {
  static std::uint64_t step(const Quota& quota) noexcept {
    return static_cast<std::uint64_t>(quota.step_);
  }
  static std::uint32_t step_frac(const Quota& quota) noexcept { return quota.step_frac_; }
  static std::uint64_t window(const Quota& quota) noexcept {
    return static_cast<std::uint64_t>(quota.window_);
  }
  static std::uint32_t window_frac(const Quota& quota) noexcept { return quota.window_frac_; }
  static std::uint64_t period(const Quota& quota) noexcept {
    return static_cast<std::uint64_t>(quota.period_);
  }
  static std::uint32_t refill(const Quota& quota) noexcept { return quota.refill_; }
};

}  // namespace weir
