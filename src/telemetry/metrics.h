#pragma once

// Metrics without shared writes: each thread counts in its own cells, and a scrape adds them up.
// A scrape is rendered as Prometheus text by collectors, one for each part of the program.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::telemetry {

/// A count that one thread writes and any thread may read: an increment is a plain add, not a
/// locked instruction.
class LocalCounter {
 public:
  void Add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// The upper bounds of latency buckets in nanoseconds; the last bucket of a histogram is unbounded.
inline constexpr std::array<std::int64_t, 15> kLatencyBounds = {
    10'000,     25'000,     50'000,      100'000,     250'000,
    500'000,    1'000'000,  2'500'000,   5'000'000,   10'000'000,
    25'000'000, 50'000'000, 100'000'000, 250'000'000, 1'000'000'000};

/// Durations by kLatencyBounds. Thread safety: see LocalCounter.
class LocalHistogram {
 public:
  /// `n` observations of the same duration.
  void Observe(std::int64_t nanos, std::uint64_t n = 1) noexcept {
    std::size_t bucket = 0;
    while (bucket < kLatencyBounds.size() && nanos > kLatencyBounds[bucket]) ++bucket;
    buckets_[bucket].Add(n);
    sum_.Add(static_cast<std::uint64_t>(nanos < 0 ? 0 : nanos) * n);
  }
  std::uint64_t bucket(std::size_t i) const noexcept { return buckets_[i].value(); }
  std::uint64_t sum_nanos() const noexcept { return sum_.value(); }

 private:
  std::array<LocalCounter, kLatencyBounds.size() + 1> buckets_;
  LocalCounter sum_;
};

struct Label {
  std::string_view name;
  std::string_view value;
};

/// Writes the Prometheus text format. Begin each family once; its samples must follow
/// immediately. Not thread-safe.
class TextWriter {
 public:
  explicit TextWriter(std::string& out) : out_(out) {}

  void Counter(std::string_view name, std::string_view help) { Family(name, help, "counter"); }
  void Gauge(std::string_view name, std::string_view help) { Family(name, help, "gauge"); }
  void Histogram(std::string_view name, std::string_view help) { Family(name, help, "histogram"); }

  /// One sample of the current family.
  void Sample(std::uint64_t value, std::span<const Label> labels = {});
  void Sample(double value, std::span<const Label> labels = {});
  /// All samples of a histogram, as the sum of `parts`.
  void Samples(std::span<const LocalHistogram* const> parts, std::span<const Label> labels = {});
  /// The same with other bounds, in seconds; `counts` are not cumulative and have one more element,
  /// for values above the last bound.
  void Samples(std::span<const double> bounds, std::span<const std::uint64_t> counts, double sum,
               std::span<const Label> labels = {});

 private:
  void Family(std::string_view name, std::string_view help, std::string_view type);
  void Line(std::string_view suffix, std::span<const Label> labels, std::string_view le,
            std::string_view value);

  std::string& out_;
  std::string name_;
};

using Collector = std::function<void(TextWriter&)>;

/// The collectors of the process. Thread-safe.
class Registry {
 public:
  void Add(Collector collector);
  /// All metrics as Prometheus text. Collectors run on the calling thread, one scrape at a time.
  std::string Render() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Collector> collectors_;
};

/// Collects weir_build_info and the usual process_* metrics from /proc/self.
void CollectProcess(TextWriter& out);

}  // namespace weir::telemetry
