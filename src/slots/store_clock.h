#pragma once

#include "slots/slot.h"

namespace weir::slots {

/// A caller's estimate of a store's clock, from the answers that carry its time.
///
/// An answer was made after its request was sent and before it was received, so each bounds the
/// difference between the store's clock and the caller's from both sides. The closest bounds of the
/// last seconds apply: a clock that is set or drifts is noticed immediately if an answer
/// contradicts the bounds, and after two periods at the latest.
///
/// Not thread-safe. Times are milliseconds; the caller's are of a steady clock.
class StoreClock {
 public:
  static constexpr Millis kPeriod = 2'000;

  /// The store's clock was at `store_now` after `sent` and before `received`.
  void Note(Millis store_now, Millis sent, Millis received) noexcept;

  /// Lower bound of store clock minus caller's clock: for what must not be done before its time.
  Millis least() const noexcept;
  /// Upper bound of the same difference: for reporting when something ended.
  Millis most() const noexcept;

 private:
  struct Bounds {
    Millis least = 0;
    Millis most = 0;
  };

  Bounds now_;
  Bounds before_;  // of the previous period
  Millis begun_ = 0;
  bool known_ = false;
};

}  // namespace weir::slots
