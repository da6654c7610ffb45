#include "slots/forecast.h"

#include <algorithm>

#include "slots/window.h"

namespace weir::slots {

Forecast::Forecast(const Config& config, Millis requested, std::int64_t count)
    : size_(config.window_size), max_(config.max_per_window), requested_(requested), left_(count) {
  if (config.calendar.any()) {
    open_.emplace(config.calendar);
    const std::vector<OpenTime> times = open_->List({&requested, 1}, kMaxOpenTimes);
    end_ = times.empty() ? 0 : times.back().until;
  }
  GoTo(WindowOf(requested, size_));
}

void Forecast::GoTo(Millis window) {
  next_ = window;
  next_from_ = std::max(window, requested_);
  next_last_ = kMaxInstant;
  if (!open_) return;
  std::optional<UsableWindow> usable = NextUsable(*open_, window, size_);
  if (usable && usable->from >= end_) usable.reset();
  next_ = usable ? usable->start : kMaxInstant + 1;
  next_from_ = usable ? std::max(usable->from, requested_) : next_;
  next_last_ = usable ? usable->last : next_;
}

// The capacity of next_.
std::int64_t Forecast::Capacity(Millis window) const {
  const Millis from = std::max(window, next_from_);
  return from < window + size_ ? FirstWindowCapacity(max_, from, size_) : 0;
}

void Forecast::Take(Millis window, std::int64_t room) {
  if (room <= 0 || left_ == 0) return;
  if (windows_ == 0) first_window_ = window;
  last_window_ = window;
  left_ -= std::min(left_, room);
  ++windows_;
}

// One step for each open time, not for each window: there may be any number of windows.
void Forecast::TakeEmpty(Millis end) {
  while (next_ < end && left_ > 0) {
    Take(next_, Capacity(next_));
    const Millis stop = std::min(end, next_last_ + size_);
    // Whole windows after this one.
    const std::int64_t rest = std::max<std::int64_t>((stop - next_) / size_ - 1, 0);
    const std::int64_t needed = std::min((left_ + max_ - 1) / max_, rest);
    if (needed > 0) {
      if (windows_ == 0) first_window_ = next_ + size_;
      windows_ += needed;
      last_window_ = next_ + needed * size_;
      left_ -= std::min(left_, needed * max_);
    }
    GoTo(next_ + (needed + 1) * size_);
  }
}

void Forecast::Add(std::span<const WindowLoad> windows) {
  for (const WindowLoad& window : windows) {
    TakeEmpty(window.start);
    if (left_ == 0) return;
    if (next_ > window.start) continue;  // closed
    Take(window.start, Capacity(window.start) - window.used());
    GoTo(window.start + size_);
  }
}

}  // namespace weir::slots
