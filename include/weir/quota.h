#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "weir/result.h"

namespace weir {

enum class Algorithm : std::uint8_t {
  kTokenBucket,
  kFixedWindow,
  kSlidingLog,
  kSlidingCounter,
  kConcurrency,
  kAnchoredWindow,
};

/// The largest numbers a Quota accepts. They are checked once, when a Quota is built, so that no
/// later arithmetic can overflow.
inline constexpr std::int64_t kMaxLimit = std::int64_t{1} << 40;
inline constexpr std::chrono::nanoseconds kMaxWindow = std::chrono::hours(24) * 36525;  // 100 years
inline constexpr std::int64_t kMaxBuckets = 1024;

/// An algorithm and its numbers, validated: an invalid Quota cannot exist. An immutable value.
class Quota {
 public:
  using Duration = std::chrono::nanoseconds;

  /// A bucket of `capacity` permits, full at first, refilled evenly with `refill` permits per
  /// `period`. Exact: refill/period is kept as a fraction. An empty bucket must fill within
  /// kMaxWindow, and refill/period in lowest terms must have a numerator below 2^32.
  static Result<Quota> TokenBucket(std::int64_t capacity, std::int64_t refill,
                                   Duration period = std::chrono::seconds(1));

  /// `limit` permits in each window; windows start at multiples of `window` since the Unix epoch.
  static Result<Quota> FixedWindow(std::int64_t limit, Duration window);

  /// At most `limit` permits in any span of length `window`. Remembers every grant in the window.
  static Result<Quota> SlidingLog(std::int64_t limit, Duration window);

  /// Like SlidingLog, approximated with `buckets` counters of window/buckets each (rounded up); the
  /// one that is sliding out counts in proportion.
  static Result<Quota> SlidingCounter(std::int64_t limit, Duration window,
                                      std::int64_t buckets = 10);

  /// `limit` permits in flight; a permit that is not released comes back after `lease`.
  static Result<Quota> Concurrency(std::int64_t limit, Duration lease);

  /// `limit` permits in a window that starts with the key's first charge and ends `window` later;
  /// the next charge starts another one.
  static Result<Quota> AnchoredWindow(std::int64_t limit, Duration window);

  Algorithm algorithm() const noexcept { return algorithm_; }
  /// The capacity, for a token bucket.
  std::int64_t limit() const noexcept { return limit_; }
  /// The window, the lease of a concurrency quota, or the time an empty token bucket takes to fill.
  Duration window() const noexcept { return Duration(window_); }
  std::int64_t buckets() const noexcept { return buckets_; }
  /// Token bucket: refill() permits per period(), in lowest terms.
  std::int64_t refill() const noexcept { return refill_; }
  Duration period() const noexcept { return Duration(period_); }

  /// For display, e.g. "token_bucket(capacity=100, refill=1 per 100ms)": numbers in lowest terms.
  std::string ToString() const;

  friend bool operator==(const Quota&, const Quota&) = default;

 private:
  friend struct QuotaAccess;
  Quota() = default;

  // One cache line; everything that a token bucket's step needs is precomputed.
  Algorithm algorithm_ = Algorithm::kTokenBucket;
  std::int32_t buckets_ = 0;
  std::int64_t limit_ = 1;
  std::int64_t window_ = 1;        // ns; token bucket: limit_ * period_ / refill_, rounded down
  std::int64_t period_ = 0;        // lowest terms, ns
  std::int64_t step_ = 0;          // ns of one permit: period_ / refill_, rounded down
  std::uint32_t refill_ = 0;       // lowest terms
  std::uint32_t window_frac_ = 0;  // what window_ was rounded down by, in 1/refill_ ns
  std::uint32_t step_frac_ = 0;    // what step_ was rounded down by, in 1/refill_ ns
};

}  // namespace weir
