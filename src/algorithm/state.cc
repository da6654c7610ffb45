#include "algorithm/state.h"

#include <limits>

#include "algorithm/algorithms.h"

namespace weir::algorithm {

std::uint32_t CapacityForAcquire(const Quota& quota, const State& state) noexcept {
  return Of(quota).capacity(quota, state);
}

Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept {
  return Of(quota).peek(quota, state, now, cost);
}

Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  return Of(quota).acquire(quota, state, now, cost);
}

Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  return Of(quota).overdraw(quota, state, now, cost);
}

Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  return Of(quota).refund(quota, state, now, cost);
}

bool Release(const Quota& quota, State& state, Nanos now, std::int64_t lease) noexcept {
  const Descriptor& algorithm = Of(quota);
  return algorithm.release != nullptr && algorithm.release(state, now, lease);
}

Nanos FreshAt(Algorithm algorithm, const State& state) noexcept {
  if (state.empty()) return std::numeric_limits<Nanos>::min();
  return Of(algorithm).fresh_at(state);
}

bool Valid(Algorithm algorithm, std::span<const std::uint8_t> bytes) noexcept {
  return bytes.empty() || Of(algorithm).valid(bytes);
}

}  // namespace weir::algorithm
