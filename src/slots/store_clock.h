#pragma once

#include "slots/slot.h"

namespace weir::slots {

/// What a caller of a store knows about the store's clock, from the answers that carry its time.
///
/// An answer was made after its question was sent and before it came, so each bounds the difference
/// between the store's clock and the caller's from both sides. The closest bounds of the last
/// seconds count: a clock that is set, or that drifts, is noticed at once if an answer contradicts
/// the bounds, and after two periods at the latest.
///
/// Not thread-safe. Times are milliseconds; the caller's are of a steady clock.
class StoreClock {
 public:
  static constexpr Millis kPeriod = 2'000;

  /// The store's clock was at `store_now` after `sent` and before `received`.
  void Note(Millis store_now, Millis sent, Millis received) noexcept;

  /// Store clock less caller's clock, at least: for what must not be done before its time.
  Millis least() const noexcept;
  /// The same at most: for telling when something was over.
  Millis most() const noexcept;

 private:
  struct Bounds {
    Millis least = 0;
    Millis most = 0;
  };

  Bounds now_;
  Bounds before_;  // of the period before
  Millis begun_ = 0;
  bool known_ = false;
};

}  // namespace weir::slots
