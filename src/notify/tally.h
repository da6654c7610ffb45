#pragma once

#include <utility>

#include "notify/notify.h"

namespace weir::notify {

/// A user's window while a batch of requests takes places in it: refreshed if it has ended, taken
/// in the order of the requests, counted once each event is confirmed. The caller holds the row.
///
/// Not thread-safe, like any value.
class Tally {
 public:
  Tally(UserLimit row, Micros now) : row_(std::move(row)) {
    if (!row_.Expired(now)) return;
    row_.current_count = 0;
    row_.last_refresh_time = now;
  }

  /// False: the window is full, including the places that earlier requests of the batch have taken.
  bool has_room() const noexcept { return row_.current_count + taken_ < row_.rate_limit; }
  bool Take() noexcept {
    if (!has_room()) return false;
    ++taken_;
    return true;
  }
  /// Counts a place that was taken; places that are never confirmed do not count.
  void Confirm() noexcept { ++confirmed_; }

  bool changed() const noexcept { return confirmed_ > 0; }
  /// Whether the window would be full even without this batch.
  bool was_full() const noexcept { return row_.current_count >= row_.rate_limit; }
  bool full() const noexcept { return count() >= row_.rate_limit; }
  /// The count that the row must have afterwards.
  std::int64_t count() const noexcept { return row_.current_count + confirmed_; }
  const UserLimit& row() const noexcept { return row_; }

  SendAnswer Limited() const {
    return {.outcome = Outcome::kLimited,
            .rate_limit = row_.rate_limit,
            .resets_at = row_.window_end(),
            .of_channel = !SplitRowName(row_.user_id).channel.empty()};
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

/// The windows in which a request takes a place: the user's, and the channel's if that has its own
/// limit. A place is taken in both or in none.
///
/// Not thread-safe. The tallies must outlive it.
class Places {
 public:
  Places(Tally& user, Tally* channel) : user_(user), channel_(channel) {}

  bool Take() noexcept {
    if (!user_.has_room() || (channel_ != nullptr && !channel_->has_room())) return false;
    user_.Take();
    if (channel_ != nullptr) channel_->Take();
    return true;
  }
  void Confirm() noexcept {
    user_.Confirm();
    if (channel_ != nullptr) channel_->Confirm();
  }
  /// The window that satisfies `is_full`, or the one that ends last if both do; nullptr if
  /// neither does.
  template <typename IsFull>
  const Tally* Full(IsFull is_full) const {
    const bool channel = channel_ != nullptr && is_full(*channel_);
    if (!is_full(user_)) return channel ? channel_ : nullptr;
    return channel && channel_->row().window_end() > user_.row().window_end() ? channel_ : &user_;
  }
  /// Like Tally::Sent, for the window with fewer places left.
  SendAnswer Sent(std::string event_id) const {
    SendAnswer answer = user_.Sent(std::move(event_id));
    if (channel_ == nullptr) return answer;
    SendAnswer other = channel_->Sent({});
    if (other.remaining >= answer.remaining) return answer;
    other.event_id = std::move(answer.event_id);
    return other;
  }

 private:
  Tally& user_;
  Tally* channel_;
};

}  // namespace weir::notify
