#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/clock.h"

namespace weir::grpc {

/// How much of something a peer may do: `burst` at once, then `rate` a second; what it earns is
/// added, up to `ceiling` in all. The clock is read only when the burst is used up.
/// Not thread-safe.
class Allowance {
 public:
  Allowance(std::int64_t burst, std::int64_t rate, std::int64_t ceiling, Nanos now) noexcept
      : burst_(burst), rate_(rate), ceiling_(ceiling), left_(burst), refilled_(now) {}

  /// False: the peer has exceeded its allowance.
  [[nodiscard]] bool Spend(const Clock& clock) noexcept {
    if (--left_ >= 0) return true;
    const Nanos now = clock.Now();
    const std::int64_t seconds = std::max<Nanos>(now - refilled_, 0) / 1'000'000'000;
    if (seconds == 0) return false;
    refilled_ = now;
    left_ = seconds > burst_ ? burst_ : std::min(burst_, seconds * rate_);
    return true;
  }

  /// What comes next counts for `n` more. Whatever that leaves, a second restores the usual rate.
  void Forgo(std::int64_t n) noexcept { left_ = std::max<std::int64_t>(left_ - n, 0); }

  /// Something that justifies `n` more.
  void Earn(std::int64_t n) noexcept { left_ = std::min(ceiling_, left_ + n); }

 private:
  const std::int64_t burst_;
  const std::int64_t rate_;
  const std::int64_t ceiling_;
  std::int64_t left_;
  Nanos refilled_;
};

}  // namespace weir::grpc
