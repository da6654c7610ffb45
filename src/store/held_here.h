#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weir::store {

/// What this node holds of one bucket of a leased policy, across all reactors.
struct HeldHere {
  bool leased = false;          ///< the bucket is requested often enough
  std::int64_t held = 0;        ///< permits that can be spent now
  double share_per_second = 0;  ///< the reserved part of the rate; 0: nothing

  void Add(const HeldHere& other) noexcept {
    leased = leased || other.leased;
    held += other.held;
    share_per_second += other.share_per_second;
  }
};

/// Receives one entry for each bucket, in order.
using HeldFound = std::function<void(const std::vector<HeldHere>&)>;
/// Called on a reactor's thread; `done` runs there later.
using FindHeld = std::function<void(std::vector<std::string> buckets, HeldFound done)>;

}  // namespace weir::store
