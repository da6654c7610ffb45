#include "oracle.h"

#include <algorithm>

#include "algorithm/state.h"

namespace weir::simulation {

std::optional<std::string> FirstRefused(const Quota& quota,
                                        const std::vector<Admission>& admissions) {
  std::vector<std::uint8_t> bytes;
  algorithm::State state;
  for (std::size_t i = 0; i < admissions.size(); ++i) {
    const std::uint32_t needed = algorithm::CapacityForAcquire(quota, state);
    if (bytes.size() < needed) bytes.resize(2 * std::size_t{needed});
    state.data = bytes.data();
    state.capacity = static_cast<std::uint32_t>(bytes.size());
    const auto& [time, cost] = admissions[i];
    if (cost < 0) {
      static_cast<void>(algorithm::Refund(quota, state, time, -cost));
      continue;
    }
    if (algorithm::Acquire(quota, state, time, cost).allowed()) continue;
    return "admission " + std::to_string(i + 1) + " of " + std::to_string(cost) + " at " +
           std::to_string(time) + " exceeds " + quota.ToString();
  }
  return std::nullopt;
}

}  // namespace weir::simulation
