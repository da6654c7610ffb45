#pragma once

#include "weir/decision.h"

namespace weir::algorithm {

/// Whether `one` says more about why, and how long, a client must wait than `other`: what is
/// answered when several limits apply.
inline bool Stricter(const Decision& one, const Decision& other) noexcept {
  static_assert(Verdict::kAllowed < Verdict::kLimited && Verdict::kLimited < Verdict::kNever);
  if (one.verdict != other.verdict) return one.verdict > other.verdict;
  if (one.verdict == Verdict::kLimited) return one.retry_after > other.retry_after;
  return one.remaining < other.remaining;
}

}  // namespace weir::algorithm
