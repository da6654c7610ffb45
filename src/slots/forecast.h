#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "slots/slot.h"

namespace weir::slots {

/// Which windows `count` events requested for `requested` would get if no others arrived, without
/// assigning them. Ignores shares of tenants; considers the config's calendar, as far as the
/// search for a slot goes.
///
/// Add the rows of windows from WindowOf(requested) on, in order, in pages of any size, until
/// it is done or there are no more; then call Finish. A value, not thread-safe.
class Forecast {
 public:
  Forecast(const Config& config, Millis requested, std::int64_t count);

  void Add(std::span<const WindowLoad> windows);
  /// Windows without a row are empty: the rest follows by arithmetic.
  void Finish() { TakeEmpty(kMaxInstant + 1); }

  bool done() const noexcept { return left_ == 0; }
  Millis next() const noexcept { return next_; }  ///< where the next page begins

  Millis first_window() const noexcept { return first_window_; }
  Millis last_window() const noexcept { return last_window_; }
  Millis finished_by() const noexcept { return last_window_ + size_; }
  std::int64_t windows() const noexcept { return windows_; }  ///< windows that get events
  std::int64_t unplaced() const noexcept { return left_; }    ///< after Finish: events without room

 private:
  void Take(Millis window, std::int64_t room);
  /// Windows before `end` that have no row.
  void TakeEmpty(Millis end);
  std::int64_t Capacity(Millis window) const;
  /// Moves next_ to the first window at or after `window` that may be used.
  void GoTo(Millis window);

  Millis size_;
  std::int64_t max_;
  Millis requested_;
  std::int64_t left_;
  std::optional<OpenTimes> open_;
  Millis end_ = 0;  // of the open times that a search covers
  Millis next_ = 0;
  Millis next_from_ = 0;  // not before this time within next_
  Millis next_last_ = 0;  // the last window of next_'s open time
  Millis first_window_ = 0;
  Millis last_window_ = 0;
  std::int64_t windows_ = 0;
};

}  // namespace weir::slots
