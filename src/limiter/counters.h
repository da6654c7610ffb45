#pragma once

// Counters that a reactor can increment in a nanosecond: every limiter has its own table, written
// by its thread only and summed when read.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy_set.h"
#include "weir/clock.h"

namespace weir::limiter {

/// Whole checks.
struct CheckCounts {
  std::uint64_t allowed = 0;
  std::uint64_t limited = 0;
  std::uint64_t errors = 0;     ///< could not be decided
  std::uint64_t degraded = 0;   ///< decided by on_store_error; also counted above
  std::uint64_t unmatched = 0;  ///< no policy applied; also counted above
};

/// The decisions of one policy.
struct PolicyCounts {
  std::string domain;
  std::string policy;
  std::uint64_t allowed = 0;
  std::uint64_t limited = 0;
  std::uint64_t shadow_limited = 0;
  std::uint64_t errors = 0;  ///< the store could not answer
  /// Remaining permits after its last decision; nothing if that is not tracked or there was none.
  std::optional<std::uint64_t> remaining = {};
};

/// One limiter's counters.
///
/// Thread safety: one thread increments them, any thread may read.
class CounterTable {
 public:
  enum Kind : std::size_t {
    kAllowed,
    kLimited,
    kShadowLimited,
    kErrors,
    kRemaining,    // not counters: what the last decision left, and when that was
    kRemainingAt,  // 0: there was none
    kKinds
  };
  enum Total : std::size_t {
    kChecksAllowed,
    kChecksLimited,
    kChecksFailed,
    kChecksDegraded,
    kChecksUnmatched,
    kTotals
  };
  using Row = std::array<std::atomic<std::uint64_t>, kKinds>;

  CounterTable() = default;
  ~CounterTable();
  CounterTable(const CounterTable&) = delete;
  CounterTable& operator=(const CounterTable&) = delete;

  void Raise(std::uint32_t policy, Kind kind) noexcept { Increment(RowOf(policy)[kind]); }
  void Raise(Total total) noexcept { Increment(totals_[total]); }
  void SetRemaining(std::uint32_t policy, std::int64_t remaining, Nanos now) noexcept {
    Row& row = RowOf(policy);
    row[kRemaining].store(static_cast<std::uint64_t>(remaining), std::memory_order_relaxed);
    row[kRemainingAt].store(static_cast<std::uint64_t>(now), std::memory_order_release);
  }

  /// Null if nothing was counted for this policy or its neighbours.
  const Row* Find(std::uint32_t policy) const noexcept;
  std::uint64_t Read(Total total) const noexcept {
    return totals_[total].load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kRowsPerChunk = 256;
  static constexpr std::size_t kChunks = policy::PolicyIds::kMax / kRowsPerChunk + 1;
  using Chunk = std::array<Row, kRowsPerChunk>;

  // Only one thread writes, so no locked instruction is needed.
  static void Increment(std::atomic<std::uint64_t>& counter) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  Row& RowOf(std::uint32_t policy) noexcept;

  std::array<std::atomic<Chunk*>, kChunks> chunks_{};
  std::array<std::atomic<std::uint64_t>, kTotals> totals_{};
};

/// The tables of all limiters. Thread-safe.
class Counters {
 public:
  explicit Counters(const policy::PolicyIds& ids) : ids_(ids) {}

  /// A table for one limiter. Its counts stay in the sums after the limiter is destroyed.
  std::shared_ptr<CounterTable> Add();

  CheckCounts Checks() const;
  /// Every policy that was ever in force, in order of appearance. If there are more than `most`,
  /// the rest is summed up in one more, called "other".
  std::vector<PolicyCounts> Policies(std::size_t most = policy::PolicyIds::kMax) const;

 private:
  void AddUp(std::uint32_t id, PolicyCounts& sum) const;

  const policy::PolicyIds& ids_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<CounterTable>> tables_;
};

}  // namespace weir::limiter
