#pragma once

// What Envoys may spend by themselves, as assigned by the rate limit quota service: for
// /admin/explain, the dashboard and the metrics. How it is computed: docs/design/rlqs.md.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/request.h"
#include "weir/clock.h"

namespace weir::telemetry {
class TextWriter;
}

namespace weir::limiter {

/// A bucket that no policy limits is assigned this many requests per second.
inline constexpr std::int64_t kUnlimitedPerSecond = 1'000'000'000;

/// What one Envoy is assigned of one bucket. One thread writes, any may read.
struct Assigned {
  std::string domain;
  std::vector<std::pair<std::string, std::string>> entries;  ///< sorted by name
  std::atomic<std::int64_t> per_second{0};                   ///< 0: refuses everything
  std::atomic<std::int64_t> demand{0};                       ///< per second, as last reported
  std::atomic<Nanos> pushed{0};                              ///< when it was last sent; 0: not yet
  std::vector<std::string> keys;  ///< in the store; guarded by the mutex of Assignments
};

/// All assignments of a process. Thread-safe; must outlive the assignments added to it.
class Assignments {
 public:
  /// Listed until the last copy of the pointer is released.
  std::shared_ptr<Assigned> Add(std::string_view domain,
                                std::vector<std::pair<std::string, std::string>> entries);

  /// Those of this bucket: one for each Envoy that is connected here, at most `most`. The order of
  /// the entries does not matter.
  std::vector<std::shared_ptr<const Assigned>> Find(std::string_view domain,
                                                    policy::Descriptor descriptor,
                                                    std::size_t most) const;

  /// The same for a bucket of a policy, by its key in the store.
  std::vector<std::shared_ptr<const Assigned>> FindKey(std::string_view key,
                                                       std::size_t most) const;
  /// The store's keys that are charged for it.
  void SetKeys(Assigned& assigned, std::vector<std::string> keys);

  struct Totals {
    std::atomic<std::int64_t> streams{0};  ///< now
    std::atomic<std::uint64_t> pushed{0};  ///< token buckets, including unchanged ones
    std::atomic<std::uint64_t> denied{0};  ///< DENY_ALL
    std::atomic<std::uint64_t> abandoned{0};
    std::atomic<std::uint64_t> charged{0};  ///< permits taken for assignments
    std::atomic<std::uint64_t> tails{0};    ///< permits charged for what cut-off Envoys may spend
    std::atomic<std::uint64_t> turned_away{0};  ///< streams and buckets beyond the bounds
  };
  Totals& totals() noexcept { return totals_; }

  /// weir_rlqs_*.
  void Collect(telemetry::TextWriter& out) const;

 private:
  template <typename Wanted>
  std::vector<std::shared_ptr<const Assigned>> FindIf(std::size_t most, Wanted wanted) const;
  void Sweep();

  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<Assigned>> all_;
  std::size_t sweep_at_ = 1024;
  Totals totals_;
};

}  // namespace weir::limiter
