#pragma once

// Random traces for one key. A step defines how to move the clock and what to check in terms of the
// quota and of the last answer ("to the retry time, less one nanosecond"), so that traces find
// edge cases.

#include <cstdint>
#include <memory>
#include <ostream>
#include <vector>

#include "algorithm/state.h"
#include "base/int128.h"
#include "unit/algorithm/reference.h"
#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/quota.h"

namespace weir::algorithm {

enum class Move : std::uint8_t {
  kStay,
  kNanosecond,
  kWithinStep,    ///< up to what one permit takes on average
  kWithinWindow,  ///< up to two windows
  kWindow,        ///< one window, plus or minus a nanosecond
  kToRetry,       ///< the last retry_after, or one nanosecond less
  kToReset,       ///< the last reset_after, or one nanosecond less
  kFar,           ///< anywhere within a century
  kBackNanosecond,
  kBackWithinWindow,
  kBackFar,
};

enum class Amount : std::uint8_t {
  kZero,
  kOne,
  kFew,
  kAny,
  kRemaining,
  kOneMore,
  kLimit,
  kTooMuch
};

enum class Action : std::uint8_t { kAcquire, kRefund, kRelease, kOverdraw };

struct Step {
  Move move = Move::kStay;
  Amount amount = Amount::kZero;
  Action action = Action::kAcquire;
  std::uint64_t dice = 0;  ///< decides what the fields above leave open

  friend std::ostream& operator<<(std::ostream& out, const Step& step);
};

struct Trace {
  Nanos start = 0;
  std::vector<Step> steps;
};

/// 10,000 steps derived from `seed`.
Trace LongTrace(std::uint64_t seed);

/// The bytes of one key, in a buffer that is never larger than the step requires, so that a step
/// that writes too far is detected. Not thread-safe.
class Key {
 public:
  explicit Key(const Quota& quota) : quota_(quota) {}

  Decision Peek(Nanos now, std::int64_t cost) const {
    return algorithm::Peek(quota_, state_, now, cost);
  }
  Decision Acquire(Nanos now, std::int64_t cost);
  Decision Overdraw(Nanos now, std::int64_t cost);
  Decision Refund(Nanos now, std::int64_t cost);
  bool Release(Nanos now, std::int64_t lease);
  Nanos FreshAt() const { return algorithm::FreshAt(quota_.algorithm(), state_); }
  bool Valid() const;
  std::vector<std::uint8_t> Bytes() const { return {state_.data, state_.data + state_.size}; }

 private:
  void Fit(std::uint32_t capacity);

  Quota quota_;
  std::unique_ptr<std::uint8_t[]> buffer_;
  State state_;
};

/// Turns steps into clock readings and costs. Not thread-safe.
class Player {
 public:
  Player(const Quota& quota, Nanos start) : quota_(quota), now_(start) {
    last_.limit = last_.remaining = quota.limit();
  }

  /// Moves the clock as `step` says and returns its time.
  Nanos Move(const Step& step);
  std::int64_t Cost(const Step& step) const;
  std::int64_t Lease(const Step& step) const;
  /// Records the answer to the step, for later ones to refer to.
  void Heard(const Decision& decision);

 private:
  Int128 Distance(const Step& step) const;

  Quota quota_;
  Nanos now_;
  Decision last_;
  std::vector<std::int64_t> leases_;
};

}  // namespace weir::algorithm
