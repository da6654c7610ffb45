#include "policy/long_leases.h"

namespace weir::policy {

std::string LongLeaseOf(Mode mode, Algorithm algorithm, std::chrono::nanoseconds window) {
  constexpr std::chrono::minutes kLong{10};
  const bool counts_windows =
      algorithm == Algorithm::kFixedWindow || algorithm == Algorithm::kSlidingCounter;
  if (mode == Mode::kExact || !counts_windows || window <= kLong) return {};
  return "permits lost by leases come back only when the window ends";
}

std::vector<std::string> LongLeases(const PolicySet& set) {
  std::vector<std::string> sentences;
  for (const Policy& policy : set.policies()) {
    const Definition& one = policy.definition;
    if (!one.quota) continue;
    const std::string loss = LongLeaseOf(one.mode, one.quota->algorithm(), one.quota->window());
    if (loss.empty()) continue;
    sentences.push_back(one.source + ": policy '" + one.name + "': mode: leased: " + loss);
  }
  return sentences;
}

}  // namespace weir::policy
