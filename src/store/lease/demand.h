#pragma once

#include <cstdint>

#include "weir/clock.h"

namespace weir::store::lease {

/// How often a node gets checks for one key, counted in half terms of a lease: this decides whether
/// the key is leased, and how much of it. Time is the node's. Not thread-safe.
class Demand {
 public:
  Demand(Nanos half_term, Nanos now) : half_(half_term), slot_began_(now), noted_(now) {}

  /// Notes a check. The key is leased once there are kLeaseFrom checks in half a term, until there
  /// are fewer than kExactBelow.
  void Note(Nanos now, std::int64_t cost);
  /// Notes a lease that a node takes from a region's store: a node that leases gets many checks.
  void Lend(Nanos now, std::int64_t cost);
  /// Accounts for time that passed without a check.
  void Pass(Nanos now);
  bool leased() const noexcept { return leased_; }
  /// Leases until the end of this half term, however few checks there are.
  void Insist() noexcept { leased_ = true; }
  /// When the last check was noted.
  Nanos noted() const noexcept { return noted_; }
  /// The cost that the next half term is likely to request; at least 1.
  std::int64_t Expected() const noexcept;

 private:
  static constexpr std::int64_t kLeaseFrom = 8;
  static constexpr std::int64_t kExactBelow = 4;

  struct Slot {
    std::int64_t checks = 0;
    std::int64_t cost = 0;
  };

  Nanos half_;
  Nanos slot_began_;
  Nanos noted_;
  Slot current_;
  Slot before_;
  bool leased_ = false;
};

}  // namespace weir::store::lease
