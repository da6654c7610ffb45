#include "admin/live_totals.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir::admin {

double Percentile(const std::array<std::uint64_t, telemetry::kLatencyBounds.size() + 1>& buckets,
                  double part) {
  std::uint64_t total = 0;
  for (const std::uint64_t count : buckets) total += count;
  if (total == 0) return 0;
  const double wanted = part * static_cast<double>(total);
  double below = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const auto here = static_cast<double>(buckets[i]);
    if (here == 0 || below + here < wanted) {
      below += here;
      continue;
    }
    const auto bound = [](std::size_t n) {
      return static_cast<double>(telemetry::kLatencyBounds[n]) / 1000;
    };
    const double low = i == 0 ? 0 : bound(i - 1);
    // Nothing is known above the last bound.
    const double high = i == telemetry::kLatencyBounds.size() ? low : bound(i);
    return low + (high - low) * (wanted - below) / here;
  }
  return static_cast<double>(telemetry::kLatencyBounds.back()) / 1000;
}

LiveTotals::LiveTotals(Options options) : options_(std::move(options)) {}

LiveTotals::~LiveTotals() { Stop(); }

void LiveTotals::Start() {
  before_ = options_.read();
  thread_ = std::thread([this] { Loop(); });
}

void LiveTotals::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LiveTotals::Loop() {
  constexpr std::chrono::seconds kTurn(1);
  auto next = std::chrono::steady_clock::now();
  for (;;) {
    // Missed iterations (the machine slept) are not made up for.
    next = std::max(next + kTurn, std::chrono::steady_clock::now());
    std::unique_lock lock(mutex_);
    if (stopping_.wait_until(lock, next, [this] { return stop_; })) return;
    lock.unlock();
    Tick(SystemClock::Get().Now());
  }
}

void LiveTotals::Tick(Nanos now) {
  const RunningTotals totals = options_.read();
  SecondTotals second;
  second.second = now / 1'000'000'000;
  second.allowed = totals.allowed - before_.allowed;
  second.limited = totals.limited - before_.limited;
  auto latency = totals.latency;
  for (std::size_t i = 0; i < latency.size(); ++i) latency[i] -= before_.latency[i];
  second.p50_us = Percentile(latency, 0.5);
  second.p99_us = Percentile(latency, 0.99);
  before_ = totals;
  {
    const std::lock_guard lock(mutex_);
    if (ring_.size() < kSeconds) {
      ring_.push_back(second);
    } else {
      ring_[next_] = second;
    }
    next_ = (next_ + 1) % kSeconds;
  }
  if (options_.on_second) options_.on_second(now);
}

std::vector<SecondTotals> LiveTotals::Last(std::size_t seconds) const {
  const std::lock_guard lock(mutex_);
  const std::size_t count = std::min(seconds, ring_.size());
  std::vector<SecondTotals> last;
  last.reserve(count);
  for (std::size_t i = ring_.size() - count; i < ring_.size(); ++i) {
    last.push_back(ring_[(ring_.size() < kSeconds ? i : next_ + i) % kSeconds]);
  }
  return last;
}

}  // namespace weir::admin
