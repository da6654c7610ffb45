// Any bytes that Valid accepts can be stepped: no step reads or writes out of bounds, overflows, or
// leaves bytes that Valid refuses. The quota is arbitrary, so states also meet quotas they were not
// made under.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "algorithm/algorithms.h"
#include "algorithm/lease.h"
#include "algorithm/settle.h"
#include "algorithm/state.h"

namespace {

using weir::Algorithm;
using weir::Decision;
using weir::Nanos;
using weir::Quota;
using weir::Result;
using weir::algorithm::State;

/// Takes numbers off the front of the input; zeros at its end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::int64_t Number() {
    std::int64_t number = 0;
    const std::size_t taken = std::min(size_, sizeof number);
    std::memcpy(&number, data_, taken);
    data_ += taken;
    size_ -= taken;
    return number;
  }
  const std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

Result<Quota> AnyQuota(Algorithm algorithm, std::int64_t limit, std::int64_t window,
                       std::int64_t buckets) {
  const std::chrono::nanoseconds span(window);
  switch (algorithm) {
    case Algorithm::kTokenBucket:
      return Quota::TokenBucket(limit, buckets, span);
    case Algorithm::kFixedWindow:
      return Quota::FixedWindow(limit, span);
    case Algorithm::kSlidingLog:
      return Quota::SlidingLog(limit, span);
    case Algorithm::kSlidingCounter:
      return Quota::SlidingCounter(limit, span, buckets);
    case Algorithm::kConcurrency:
      return Quota::Concurrency(limit, span);
    case Algorithm::kAnchoredWindow:
      return Quota::AnchoredWindow(limit, span);
  }
  std::abort();
}

/// A state in a buffer of exactly the given capacity, so that a sanitizer detects one byte too
/// many.
class Key {
 public:
  Key(const std::uint8_t* data, std::size_t size) { Fit(data, size, size); }

  State& Sized(std::size_t capacity) {
    const std::unique_ptr<std::uint8_t[]> old = std::move(buffer_);
    Fit(old.get(), state_.size, std::max<std::size_t>(capacity, state_.size));
    return state_;
  }
  State& state() { return state_; }

 private:
  void Fit(const std::uint8_t* data, std::size_t size, std::size_t capacity) {
    buffer_ = std::make_unique<std::uint8_t[]>(capacity);
    if (size > 0) std::memcpy(buffer_.get(), data, size);
    state_ = {buffer_.get(), static_cast<std::uint32_t>(size),
              static_cast<std::uint32_t>(capacity)};
  }

  std::unique_ptr<std::uint8_t[]> buffer_;
  State state_;
};

void Check(const Quota& quota, const State& state, const Decision& decision) {
  const bool sound = weir::algorithm::Valid(quota.algorithm(), {state.data, state.size}) &&
                     decision.limit == quota.limit() && decision.remaining >= 0 &&
                     decision.remaining <= quota.limit() && decision.retry_after.count() >= 0 &&
                     decision.reset_after.count() >= 0;
  if (!sound) std::abort();
}

void Step(const Quota& quota, Key& key, std::int64_t what, Nanos now, std::int64_t number) {
  namespace algorithm = weir::algorithm;
  if (what % 7 == 0) {
    Check(quota, key.state(), algorithm::Refund(quota, key.Sized(0), now, number));
  } else if (what % 7 == 1) {
    algorithm::Release(quota, key.Sized(0), now, number);
  } else if (what % 7 == 2) {
    // Held for as long as the step's number says, then settled, immediately or with a wrong stamp.
    State& state = key.Sized(algorithm::CapacityForReserve(quota, key.state()));
    const Decision decision = algorithm::Reserve(quota, state, now, number & 0xFF, number);
    Check(quota, state, decision);
    const Nanos stamp =
        number % 2 == 0 ? algorithm::StampOf(quota, now, decision) : static_cast<Nanos>(what);
    State& later = key.Sized(algorithm::CapacityForAcquire(quota, key.state()));
    Check(quota, later, algorithm::Settle(quota, later, now, stamp, -(number & 0x7F)));
  } else if (what % 7 == 3) {
    State& state = key.Sized(algorithm::CapacityForAcquire(quota, key.state()));
    Check(quota, state, algorithm::Settle(quota, state, now, number, number));
  } else if (what % 7 == 4) {
    Check(quota, key.state(), algorithm::Return(quota, key.Sized(0), now, number, number & 0xFF));
  } else if (what % 7 == 5) {
    State& state = key.Sized(algorithm::CapacityForAcquire(quota, key.state()));
    Check(quota, state, algorithm::Overdraw(quota, state, now, number));
  } else {
    State& state = key.Sized(algorithm::CapacityForAcquire(quota, key.state()));
    const Decision peeked = algorithm::Peek(quota, state, now, number);
    const Decision decision = algorithm::Acquire(quota, state, now, number);
    Check(quota, state, decision);
    if (peeked.verdict != decision.verdict) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const auto algorithm = static_cast<Algorithm>(data[0] % weir::algorithm::kCount);
  Input input(data + 1, size - 1);
  const std::int64_t limit = input.Number();
  const std::int64_t window = input.Number();
  const Result<Quota> quota = AnyQuota(algorithm, limit, window, input.Number() & 0x7FF);
  std::int64_t steps[4][2];
  for (auto& step : steps) {
    for (std::int64_t& number : step) number = input.Number();
  }
  if (!weir::algorithm::Valid(algorithm, {input.data(), input.size()})) return 0;
  Key key(input.data(), input.size());
  weir::algorithm::FreshAt(algorithm, key.state());
  if (!quota.ok()) return 0;
  for (const auto& [now, number] : steps) {
    Step(*quota, key, now ^ number, now, number);
    weir::algorithm::FreshAt(algorithm, key.state());
  }
  return 0;
}
