#pragma once

// What clients saw of limits that many processes share, and whether one store that decides under
// the quota as it was written could have admitted all of it.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "algorithm/state.h"
#include "support/linearizability.h"
#include "weir/quota.h"

namespace weir::test {

/// Replays admissions of cost 1 through the pure step: each at some moment between its sending and
/// its answer. Those that have to be placed first are, and each as early as the quota lets it,
/// which leaves the others as much room as any placing does: so if this one fails, all do. In
/// words, or nothing.
inline std::optional<std::string> Unexplained(const Quota& quota,
                                              std::vector<CheckRecord> admitted) {
  // The store's clock may count in microseconds.
  constexpr std::int64_t kCoarse = 1'000;
  const auto later = [](const CheckRecord& a, const CheckRecord& b) {
    return a.answered > b.answered;
  };
  std::sort(admitted.begin(), admitted.end(),
            [](const auto& a, const auto& b) { return a.sent < b.sent; });
  std::priority_queue<CheckRecord, std::vector<CheckRecord>, decltype(later)> waiting(later);
  std::vector<std::uint8_t> bytes;
  algorithm::State state;
  std::int64_t now = 0;
  std::size_t next = 0;
  while (next < admitted.size() || !waiting.empty()) {
    if (waiting.empty()) now = std::max(now, admitted[next].sent - kCoarse);
    while (next < admitted.size() && admitted[next].sent - kCoarse <= now) {
      waiting.push(admitted[next++]);
    }
    const std::uint32_t needed = algorithm::CapacityForAcquire(quota, state);
    if (bytes.size() < needed) bytes.resize(2 * std::size_t{needed});
    state.data = bytes.data();
    state.capacity = static_cast<std::uint32_t>(bytes.size());
    const Decision decision = algorithm::Acquire(quota, state, now, 1);
    if (!decision.allowed()) {
      now += std::max<std::int64_t>(decision.retry_after.count(), 1);
      continue;
    }
    if (waiting.top().answered + kCoarse < now) {
      return "an admission answered at " + std::to_string(waiting.top().answered) +
             " can only have been made at " + std::to_string(now) + ", under " + quota.ToString();
    }
    waiting.pop();
  }
  return std::nullopt;
}

}  // namespace weir::test
