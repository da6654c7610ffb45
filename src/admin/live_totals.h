#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "telemetry/metrics.h"
#include "weir/clock.h"

namespace weir::admin {

/// What has been counted since the start, as of one moment.
struct RunningTotals {
  std::uint64_t allowed = 0;
  std::uint64_t limited = 0;
  std::array<std::uint64_t, telemetry::kLatencyBounds.size() + 1> latency{};  ///< by bucket
};

/// What happened in one second.
struct SecondTotals {
  std::int64_t second = 0;  ///< since the Unix epoch
  std::uint64_t allowed = 0;
  std::uint64_t limited = 0;
  double p50_us = 0;
  double p99_us = 0;
};

/// The value below which `part` of the observations lie, in microseconds, assuming that they are
/// evenly spread within their bucket; 0 if there are none.
double Percentile(const std::array<std::uint64_t, telemetry::kLatencyBounds.size() + 1>& buckets,
                  double part);

/// The totals of the last five minutes, a second each, kept by a thread of its own that wakes up
/// once a second.
///
/// Thread-safe.
class LiveTotals {
 public:
  static constexpr std::size_t kSeconds = 300;

  struct Options {
    std::function<RunningTotals()> read;
    /// Also called once a second, on the same thread, for other periodic work.
    std::function<void(Nanos now)> on_second;
  };

  explicit LiveTotals(Options options);
  ~LiveTotals();
  LiveTotals(const LiveTotals&) = delete;
  LiveTotals& operator=(const LiveTotals&) = delete;

  /// Starts counting; `read` and `on_second` are not called before.
  void Start();
  /// Ends the thread; idempotent.
  void Stop();

  /// The latest seconds, oldest first.
  std::vector<SecondTotals> Last(std::size_t seconds) const;

  /// One iteration of the thread, for tests: as if the time were `now`.
  void Tick(Nanos now);

 private:
  void Loop();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  std::vector<SecondTotals> ring_;
  std::size_t next_ = 0;
  RunningTotals before_;
  std::thread thread_;
};

}  // namespace weir::admin
