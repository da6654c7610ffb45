#include "weir/quota.h"

#include <numeric>
#include <string>
#include <string_view>

#include "algorithm/algorithms.h"
#include "base/error.h"
#include "base/int128.h"

namespace weir {

namespace {

Error OutOfRange(std::string_view name, std::int64_t value, std::int64_t max,
                 std::string_view unit) {
  std::string message(name);
  message += " must be between 1 and " + std::to_string(max);
  message += unit;
  message += ", but is " + std::to_string(value);
  return Invalid(std::move(message));
}

bool LimitInRange(std::int64_t value) { return value >= 1 && value <= kMaxLimit; }

bool WindowInRange(Quota::Duration value) { return value.count() >= 1 && value <= kMaxWindow; }

Error LimitError(std::string_view name, std::int64_t value) {
  return OutOfRange(name, value, kMaxLimit, "");
}

Error WindowError(std::string_view name, Quota::Duration value) {
  return OutOfRange(name, value.count(), kMaxWindow.count(), " ns (100 years)");
}

// The largest unit that divides the duration, so that "1500ms" does not read as "1500000000ns".
std::string DurationText(std::int64_t ns) {
  struct Unit {
    std::int64_t ns;
    std::string_view name;
  };
  static constexpr Unit kUnits[] = {{86'400'000'000'000, "d"}, {3'600'000'000'000, "h"},
                                    {60'000'000'000, "m"},     {1'000'000'000, "s"},
                                    {1'000'000, "ms"},         {1'000, "us"}};
  for (const Unit& unit : kUnits) {
    if (ns % unit.ns == 0) return std::to_string(ns / unit.ns) + std::string(unit.name);
  }
  return std::to_string(ns) + "ns";
}

std::string NumberText(std::string_view name, std::int64_t value) {
  return std::string(name) + "=" + std::to_string(value);
}

}  // namespace

Result<Quota> Quota::TokenBucket(std::int64_t capacity, std::int64_t refill, Duration period) {
  if (!LimitInRange(capacity)) return LimitError("capacity", capacity);
  if (!LimitInRange(refill)) return LimitError("refill", refill);
  if (!WindowInRange(period)) return WindowError("period", period);

  const std::int64_t divisor = std::gcd(refill, period.count());
  const std::int64_t n = refill / divisor;
  const std::int64_t p = period.count() / divisor;
  if (n > 0xFFFF'FFFF) {
    return Invalid("refill per period, in lowest terms " + std::to_string(n) + " per " +
                   std::to_string(p) +
                   " ns, must have a refill below 4294967296: use a rounder refill or period");
  }
  const Int128 fill = Int128{capacity} * p;  // in 1/n ns
  if (fill > Int128{kMaxWindow.count()} * n) {
    return Invalid("an empty bucket of capacity " + std::to_string(capacity) + " at refill " +
                   std::to_string(refill) + " per " + DurationText(period.count()) +
                   " must fill within 100 years: lower the capacity or raise the refill");
  }
  Quota quota;
  quota.algorithm_ = Algorithm::kTokenBucket;
  quota.limit_ = capacity;
  quota.window_ = static_cast<std::int64_t>(fill / n);
  quota.window_frac_ = static_cast<std::uint32_t>(fill % n);
  quota.refill_ = static_cast<std::uint32_t>(n);
  quota.period_ = p;
  quota.step_ = p / n;
  quota.step_frac_ = static_cast<std::uint32_t>(p % n);
  return quota;
}

Result<Quota> Quota::FixedWindow(std::int64_t limit, Duration window) {
  if (!LimitInRange(limit)) return LimitError("limit", limit);
  if (!WindowInRange(window)) return WindowError("window", window);
  Quota quota;
  quota.algorithm_ = Algorithm::kFixedWindow;
  quota.limit_ = limit;
  quota.window_ = window.count();
  return quota;
}

Result<Quota> Quota::SlidingLog(std::int64_t limit, Duration window) {
  Result<Quota> quota = FixedWindow(limit, window);
  if (quota.ok()) quota->algorithm_ = Algorithm::kSlidingLog;
  return quota;
}

Result<Quota> Quota::SlidingCounter(std::int64_t limit, Duration window, std::int64_t buckets) {
  Result<Quota> quota = FixedWindow(limit, window);
  if (!quota.ok()) return quota;
  if (buckets < 1 || buckets > kMaxBuckets) return OutOfRange("buckets", buckets, kMaxBuckets, "");
  if (buckets > window.count()) {
    return Invalid("buckets must not exceed the nanoseconds of the window (" +
                   std::to_string(window.count()) + "), but is " + std::to_string(buckets));
  }
  quota->algorithm_ = Algorithm::kSlidingCounter;
  quota->buckets_ = static_cast<std::int32_t>(buckets);
  return quota;
}

Result<Quota> Quota::Concurrency(std::int64_t limit, Duration lease) {
  if (!LimitInRange(limit)) return LimitError("limit", limit);
  if (!WindowInRange(lease)) return WindowError("lease", lease);
  Quota quota;
  quota.algorithm_ = Algorithm::kConcurrency;
  quota.limit_ = limit;
  quota.window_ = lease.count();
  return quota;
}

Result<Quota> Quota::AnchoredWindow(std::int64_t limit, Duration window) {
  Result<Quota> quota = FixedWindow(limit, window);
  if (quota.ok()) quota->algorithm_ = Algorithm::kAnchoredWindow;
  return quota;
}

std::string Quota::ToString() const {
  const algorithm::Descriptor& kind = algorithm::Of(algorithm_);
  std::string text = std::string(kind.name) + "(" + NumberText(kind.limit_name, limit_) + ", ";
  if (kind.refills()) {
    // As people write it: 10 per second, not 1 per 100 ms, which is the same in lowest terms.
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::int64_t times = kSecond % period_ == 0 ? kSecond / period_ : 1;
    text += NumberText("refill", refill_ * times) + " per " + DurationText(period_ * times);
  } else {
    text.append(kind.span_name).append("=").append(DurationText(window_));
  }
  if (kind.has_buckets) text += ", " + NumberText("buckets", buckets_);
  return text + ")";
}

}  // namespace weir
