#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weir::store {

/// What this node holds of one bucket of a leased policy, all reactors together.
struct HeldHere {
  bool leased = false;          ///< the bucket is asked for often enough
  std::int64_t held = 0;        ///< permits that can be spent now
  double share_per_second = 0;  ///< what is reserved of the rate; 0: nothing

  void Add(const HeldHere& other) noexcept {
    leased = leased || other.leased;
    held += other.held;
    share_per_second += other.share_per_second;
  }
};

/// Told one for each bucket, in order.
using HeldFound = std::function<void(const std::vector<HeldHere>&)>;
/// Called on a reactor's thread, where `done` runs later.
using FindHeld = std::function<void(std::vector<std::string> buckets, HeldFound done)>;

}  // namespace weir::store
