#pragma once

#include <chrono>
#include <cstdint>

namespace weir {

enum class Verdict : std::uint8_t {
  kAllowed,
  kLimited,  ///< Not now: retry after `retry_after`.
  kNever,    ///< The cost is larger than the limit: waiting will not help.
  kInvalid,  ///< The cost is negative: nothing was decided or charged.
};

/// The result of a check, with everything a 429 response needs. A plain value.
struct Decision {
  Verdict verdict = Verdict::kAllowed;
  std::int64_t limit = 0;      ///< The most permits the quota grants at once.
  std::int64_t remaining = 0;  ///< Permits left after this decision.
  /// Zero when allowed. When limited, exact: the same call is refused one nanosecond earlier and
  /// granted then, if the key is not charged in between. Zero with kNever: waiting does not help.
  std::chrono::nanoseconds retry_after{0};
  /// Time until all of `limit` is available again if nothing more is charged.
  std::chrono::nanoseconds reset_after{0};
  /// Concurrency quotas: names the permits just granted, for Engine::Release. 0 = none. Of a token
  /// bucket only Engine::TryReserveAll sets it.
  std::int64_t lease = 0;

  bool allowed() const noexcept { return verdict == Verdict::kAllowed; }

  friend bool operator==(const Decision&, const Decision&) = default;
};

/// Permits taken in advance, to be spent within a term of their grant.
struct LeaseGrant {
  std::int64_t granted = 0;
  std::int64_t at = 0;  ///< Nanoseconds since the epoch, by the engine's clock. Names the charge.
  Decision decision;    ///< Of the charge; if nothing was granted, of a single permit.
};

}  // namespace weir
