#include "algorithm/state.h"

#include <limits>

#include "algorithm/bytes.h"
#include "algorithm/charge_log.h"
#include "algorithm/concurrency.h"
#include "algorithm/fixed_window.h"
#include "algorithm/sliding_counter.h"
#include "algorithm/sliding_log.h"
#include "algorithm/time_range.h"
#include "algorithm/token_bucket.h"

namespace weir::algorithm {

namespace {

bool ValidTokenBucket(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() != kTokenBucketBytes) return false;
  const auto full_at = Load<Nanos>(bytes.data());
  const auto frac = Load<std::uint32_t>(bytes.data() + 8);
  return full_at >= kEarliest && full_at <= kLatest + kMaxWindow.count() &&
         frac < std::numeric_limits<std::uint32_t>::max();
}

}  // namespace

std::uint32_t CapacityForAcquire(const Quota& quota, const State& state) noexcept {
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket:
      return kTokenBucketBytes;
    case Algorithm::kFixedWindow:
      return fixed_window::kBytes;
    case Algorithm::kSlidingCounter:
      return sliding_counter::CapacityForAcquire(quota, state);
    case Algorithm::kSlidingLog:
    case Algorithm::kConcurrency:
      return CapacityForAppend(state);
  }
  return 0;
}

Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept {
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket:
      return Peek(quota, ReadTokenBucket(state), now, cost);
    case Algorithm::kFixedWindow:
      return fixed_window::Peek(quota, state, now, cost);
    case Algorithm::kSlidingLog:
      return sliding_log::Peek(quota, state, now, cost);
    case Algorithm::kSlidingCounter:
      return sliding_counter::Peek(quota, state, now, cost);
    case Algorithm::kConcurrency:
      return concurrency::Peek(quota, state, now, cost);
  }
  return {};
}

Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket: {
      TokenBucketState bucket = ReadTokenBucket(state);
      const Decision decision = Acquire(quota, bucket, now, cost);
      if (decision.allowed() && cost > 0) WriteTokenBucket(state, bucket);
      return decision;
    }
    case Algorithm::kFixedWindow:
      return fixed_window::Acquire(quota, state, now, cost);
    case Algorithm::kSlidingLog:
      return sliding_log::Acquire(quota, state, now, cost);
    case Algorithm::kSlidingCounter:
      return sliding_counter::Acquire(quota, state, now, cost);
    case Algorithm::kConcurrency:
      return concurrency::Acquire(quota, state, now, cost);
  }
  return {};
}

Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket: {
      TokenBucketState bucket = ReadTokenBucket(state);
      const Decision decision = Overdraw(quota, bucket, now, cost);
      if (cost > 0) WriteTokenBucket(state, bucket);
      return decision;
    }
    case Algorithm::kFixedWindow:
      return fixed_window::Overdraw(quota, state, now, cost);
    case Algorithm::kSlidingLog:
      return sliding_log::Overdraw(quota, state, now, cost);
    case Algorithm::kSlidingCounter:
      return sliding_counter::Overdraw(quota, state, now, cost);
    case Algorithm::kConcurrency:
      return concurrency::Peek(quota, state, now, 0);
  }
  return {};
}

Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket: {
      TokenBucketState bucket = ReadTokenBucket(state);
      const Decision decision = Refund(quota, bucket, now, cost);
      if (!state.empty()) WriteTokenBucket(state, bucket);
      return decision;
    }
    case Algorithm::kFixedWindow:
      return fixed_window::Refund(quota, state, now, cost);
    case Algorithm::kSlidingLog:
      return sliding_log::Refund(quota, state, now, cost);
    case Algorithm::kSlidingCounter:
      return sliding_counter::Refund(quota, state, now, cost);
    case Algorithm::kConcurrency:
      return concurrency::Refund(quota, state, now, cost);
  }
  return {};
}

bool Release(const Quota& quota, State& state, Nanos now, std::int64_t lease) noexcept {
  return quota.algorithm() == Algorithm::kConcurrency && concurrency::Release(state, now, lease);
}

Nanos FreshAt(Algorithm algorithm, const State& state) noexcept {
  if (state.empty()) return std::numeric_limits<Nanos>::min();
  switch (algorithm) {
    case Algorithm::kTokenBucket:
      return FreshAt(ReadTokenBucket(state));
    case Algorithm::kFixedWindow:
      return fixed_window::FreshAt(state);
    case Algorithm::kSlidingLog:
      return sliding_log::FreshAt(state);
    case Algorithm::kSlidingCounter:
      return sliding_counter::FreshAt(state);
    case Algorithm::kConcurrency:
      return concurrency::FreshAt(state);
  }
  return std::numeric_limits<Nanos>::min();
}

bool Valid(Algorithm algorithm, std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.empty()) return true;
  switch (algorithm) {
    case Algorithm::kTokenBucket:
      return ValidTokenBucket(bytes);
    case Algorithm::kFixedWindow:
      return fixed_window::Valid(bytes);
    case Algorithm::kSlidingLog:
      return sliding_log::Valid(bytes);
    case Algorithm::kSlidingCounter:
      return sliding_counter::Valid(bytes);
    case Algorithm::kConcurrency:
      return concurrency::Valid(bytes);
  }
  return false;
}

}  // namespace weir::algorithm
