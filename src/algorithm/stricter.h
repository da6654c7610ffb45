#pragma once

#include "weir/decision.h"

namespace weir::algorithm {

/// Whether `one` tells a client more about why, and how long, it must wait than `other`: the
/// stricter one is returned when several limits apply.
inline bool Stricter(const Decision& one, const Decision& other) noexcept {
  static_assert(Verdict::kAllowed < Verdict::kLimited && Verdict::kLimited < Verdict::kNever);
  if (one.verdict != other.verdict) return one.verdict > other.verdict;
  if (one.verdict == Verdict::kLimited) return one.retry_after > other.retry_after;
  return one.remaining < other.remaining;
}

}  // namespace weir::algorithm
