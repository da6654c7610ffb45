#include "store/guard/breaker.h"

#include <algorithm>
#include <utility>

namespace weir::store::guard {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

}  // namespace

Breaker::Breaker(const BreakerOptions& options, const Clock* clock, OnChange on_change)
    : options_(options),
      clock_(clock == nullptr ? SystemClock::Get() : *clock),
      on_change_(std::move(on_change)),
      wait_(options.first_wait),
      random_(options.seed != 0 ? options.seed : std::random_device{}()) {}

void Breaker::Succeeded(std::uint64_t period) noexcept {
  if (period != this->period()) return;
  successes_.fetch_add(1, std::memory_order_relaxed);
  // Read before write: as long as calls succeed, reactors do not contend for the cache line.
  if (in_a_row_.load(std::memory_order_relaxed) != 0) in_a_row_.store(0, std::memory_order_relaxed);
}

void Breaker::Failed(std::uint64_t period) {
  const Nanos now = clock_.Now();
  const std::lock_guard lock(mutex_);
  if (period != this->period() || !closed()) return;
  const std::uint32_t row = in_a_row_.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t successes = successes_.load(std::memory_order_relaxed);
  if (now - second_began_ >= kSecond) {
    second_began_ = now;
    successes_before_ = successes;
    failures_ = 0;
  }
  ++failures_;
  const std::uint64_t calls = successes - successes_before_ + failures_;
  const bool mostly = calls >= options_.least_calls &&
                      static_cast<double>(failures_) >= options_.ratio * static_cast<double>(calls);
  if (row < options_.failures && !mostly) return;
  wait_ = options_.first_wait;
  OpenLocked(now);
}

bool Breaker::ClaimProbe() {
  const std::lock_guard lock(mutex_);
  if (state() != BreakerState::kOpen || clock_.Now() < next_probe_) return false;
  SetLocked(BreakerState::kHalfOpen);
  return true;
}

void Breaker::ProbeSucceeded() {
  const std::lock_guard lock(mutex_);
  if (state() != BreakerState::kHalfOpen) return;
  in_a_row_.store(0, std::memory_order_relaxed);
  second_began_ = clock_.Now();
  successes_before_ = successes_.load(std::memory_order_relaxed);
  failures_ = 0;
  period_.fetch_add(1, std::memory_order_acq_rel);
  SetLocked(BreakerState::kClosed);
}

void Breaker::ProbeFailed() {
  const std::lock_guard lock(mutex_);
  if (state() != BreakerState::kHalfOpen) return;
  wait_ = std::min(2 * wait_, options_.longest_wait);
  OpenLocked(clock_.Now());
}

void Breaker::OpenLocked(Nanos now) {
  next_probe_ = now + Jittered(wait_);
  SetLocked(BreakerState::kOpen);
}

void Breaker::SetLocked(BreakerState state) {
  state_.store(state, std::memory_order_release);
  if (on_change_) on_change_(state);
}

/// Between half of it and all of it, so that the nodes of a store do not probe in step.
Nanos Breaker::Jittered(std::chrono::milliseconds wait) {
  const Nanos whole = std::chrono::nanoseconds(wait).count();
  return std::uniform_int_distribution<Nanos>(whole / 2, whole)(random_);
}

}  // namespace weir::store::guard
