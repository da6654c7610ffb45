#pragma once

// What clients observed of limits that many processes share, and whether one store that decides
// under the original quota could have admitted all of it.

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

/// Places admissions of cost 1: each at some moment between its sending and its answer,
/// such that the pure step grants all of them. The most urgent are placed first, each as
/// early as the quota allows. That alone may fail although a solution exists: one that could wait
/// may have taken the place of a slightly later one that could not. So a failure makes the last one
/// before it that could have waited wait, and all are placed again (Simons, 1978); if there is no
/// such one, no solution exists.
class Placing {
 public:
  Placing(const Quota& quota, const std::vector<CheckRecord>& admitted) : quota_(quota) {
    for (const CheckRecord& record : admitted) jobs_.push_back({record.sent, record.answered});
  }

  /// Why they cannot be placed, as text, or nothing.
  std::optional<std::string> Problem() {
    constexpr int kMostTries = 20'000;
    for (int i = 0; i < kMostTries; ++i) {
      const std::optional<std::string> problem = Try();
      if (!problem || !Yield()) return problem;
    }
    return "no placing was found in " + std::to_string(kMostTries) + " tries";
  }

 private:
  // The store's clock may count in microseconds.
  static constexpr std::int64_t kCoarse = 1'000;
  struct Job {
    std::int64_t from = 0;
    std::int64_t to = 0;
  };

  std::optional<std::string> Try() {
    std::sort(jobs_.begin(), jobs_.end(),
              [](const Job& a, const Job& b) { return a.from < b.from; });
    const auto later = [this](std::size_t a, std::size_t b) { return jobs_[a].to > jobs_[b].to; };
    std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> waiting(later);
    std::vector<std::uint8_t> bytes;
    algorithm::State state;
    std::int64_t now = 0;
    std::size_t next = 0;
    placed_.clear();
    while (next < jobs_.size() || !waiting.empty()) {
      if (waiting.empty()) now = std::max(now, jobs_[next].from - kCoarse);
      while (next < jobs_.size() && jobs_[next].from - kCoarse <= now) waiting.push(next++);
      const std::uint32_t needed = algorithm::CapacityForAcquire(quota_, state);
      if (bytes.size() < needed) bytes.resize(2 * std::size_t{needed});
      state.data = bytes.data();
      state.capacity = static_cast<std::uint32_t>(bytes.size());
      const Decision decision = algorithm::Acquire(quota_, state, now, 1);
      if (!decision.allowed()) {
        now += std::max<std::int64_t>(decision.retry_after.count(), 1);
        continue;
      }
      placed_.push_back(waiting.top());
      if (jobs_[waiting.top()].to + kCoarse < now) {
        return "an admission answered at " + std::to_string(jobs_[waiting.top()].to) +
               " can only have been made at " + std::to_string(now) + ", under " +
               quota_.ToString();
      }
      waiting.pop();
    }
    return std::nullopt;
  }

  /// The last one placed failed. False if no other can make room for it.
  bool Yield() {
    const Job& failed = jobs_[placed_.back()];
    std::int64_t from = failed.from;
    for (std::size_t i = placed_.size() - 1; i-- > 0;) {
      Job& job = jobs_[placed_[i]];
      if (job.to > failed.to) {
        job.from = from;
        return true;
      }
      from = std::min(from, job.from);
    }
    return false;
  }

  const Quota quota_;
  std::vector<Job> jobs_;
  std::vector<std::size_t> placed_;
};

/// Why no single store deciding under `quota` could have admitted all of it, or nothing.
inline std::optional<std::string> Unexplained(const Quota& quota,
                                              const std::vector<CheckRecord>& admitted) {
  return Placing(quota, admitted).Problem();
}

}  // namespace weir::test
