#pragma once

#include <utility>

#include "notify/notify.h"

namespace weir::notify {

/// A user's window while a batch of requests takes places in it: refreshed if it is over, taken in
/// the order of the requests, counted once each event is confirmed. Whoever uses one holds the row.
///
/// Not thread-safe, like any value.
class Tally {
 public:
  Tally(UserLimit row, Micros now) : row_(std::move(row)) {
    if (!row_.Expired(now)) return;
    row_.current_count = 0;
    row_.last_refresh_time = now;
  }

  /// False: the window is full, counting the places that earlier requests of the batch have taken.
  bool Take() noexcept {
    if (row_.current_count + taken_ >= row_.rate_limit) return false;
    ++taken_;
    return true;
  }
  /// Counts a place that was taken; places that are never confirmed count nothing.
  void Confirm() noexcept { ++confirmed_; }

  bool changed() const noexcept { return confirmed_ > 0; }
  /// The window would be full without this batch, too.
  bool was_full() const noexcept { return row_.current_count >= row_.rate_limit; }
  bool full() const noexcept { return count() >= row_.rate_limit; }
  /// What the row has to hold afterwards.
  std::int64_t count() const noexcept { return row_.current_count + confirmed_; }
  const UserLimit& row() const noexcept { return row_; }

  SendAnswer Limited() const {
    return {.outcome = Outcome::kLimited,
            .rate_limit = row_.rate_limit,
            .resets_at = row_.window_end()};
  }
  /// The answer to the request whose place was confirmed last.
  SendAnswer Sent(std::string event_id) const {
    return {.outcome = Outcome::kSent,
            .event_id = std::move(event_id),
            .rate_limit = row_.rate_limit,
            .remaining = row_.rate_limit - count(),
            .resets_at = row_.window_end()};
  }

 private:
  UserLimit row_;
  std::int64_t taken_ = 0;
  std::int64_t confirmed_ = 0;
};

}  // namespace weir::notify
