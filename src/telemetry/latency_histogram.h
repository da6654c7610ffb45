#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::telemetry {

/// Durations in log-linear buckets, like HDR histograms: each power of two is split into
/// 128 parts, so a percentile is at most 1/128 (0.8 %) too large. About 58 kB, whatever is counted.
///
/// Not thread-safe: use one per thread and merge them afterwards.
class LatencyHistogram {
 public:
  LatencyHistogram() : counts_(kBuckets, 0) {}

  void Add(std::int64_t nanos, std::uint64_t n = 1) noexcept {
    const std::uint64_t value = nanos < 0 ? 0 : static_cast<std::uint64_t>(nanos);
    counts_[BucketOf(value)] += n;
    count_ += n;
    if (value > max_) max_ = value;
  }

  void Merge(const LatencyHistogram& other) noexcept {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    if (other.max_ > max_) max_ = other.max_;
  }

  /// The upper end of the first bucket at or below which at least `part` of all lie; 0 if empty.
  std::uint64_t Percentile(double part) const noexcept {
    const double wanted = part * static_cast<double>(count_);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      below += counts_[i];
      if (below > 0 && static_cast<double>(below) >= wanted) return std::min(UpperEnd(i), max_);
    }
    return max_;
  }

  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t max() const noexcept { return max_; }

 private:
  static constexpr unsigned kPartBits = 7;
  static constexpr std::uint64_t kParts = std::uint64_t{1} << kPartBits;
  static constexpr std::size_t kBuckets = (64 - kPartBits + 1) * kParts;

  // The first 128 values have a bucket each; above, the leading bit and the next seven decide.
  static std::size_t BucketOf(std::uint64_t value) noexcept {
    if (value < kParts) return value;
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - kPartBits - 1;
    return (shift + 1) * kParts + ((value >> shift) - kParts);
  }
  static std::uint64_t UpperEnd(std::size_t bucket) noexcept {
    if (bucket < kParts) return bucket;
    const std::size_t shift = bucket / kParts - 1;
    const std::uint64_t low = (kParts + bucket % kParts) << shift;
    return low + ((std::uint64_t{1} << shift) - 1);
  }

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace weir::telemetry
