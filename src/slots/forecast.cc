#include "slots/forecast.h"

#include <algorithm>

#include "slots/window.h"

namespace weir::slots {

Forecast::Forecast(const Config& config, Millis requested, std::int64_t count)
    : size_(config.window_size),
      max_(config.max_per_window),
      requested_(requested),
      left_(count),
      next_(WindowOf(requested, config.window_size)) {}

void Forecast::Take(Millis window, std::int64_t room) {
  if (room <= 0 || left_ == 0) return;
  if (windows_ == 0) first_window_ = window;
  last_window_ = window;
  left_ -= std::min(left_, room);
  ++windows_;
}

void Forecast::Add(std::span<const WindowLoad> windows) {
  for (const WindowLoad& window : windows) {
    while (next_ < window.start && left_ > 0) {  // no row: empty
      Take(next_, next_ <= requested_ ? FirstWindowCapacity(max_, requested_, size_) : max_);
      next_ += size_;
    }
    if (left_ == 0) return;
    const std::int64_t cap =
        window.start <= requested_ ? FirstWindowCapacity(max_, requested_, size_) : max_;
    Take(window.start, cap - window.used());
    next_ = window.start + size_;
  }
}

void Forecast::Finish() {
  if (left_ > 0 && next_ <= requested_) {
    Take(next_, FirstWindowCapacity(max_, requested_, size_));
    next_ += size_;
  }
  if (left_ == 0 || next_ > kMaxInstant) return;
  const std::int64_t available = (kMaxInstant - next_) / size_ + 1;
  const std::int64_t needed = std::min((left_ + max_ - 1) / max_, available);
  if (windows_ == 0) first_window_ = next_;
  windows_ += needed;
  last_window_ = next_ + (needed - 1) * size_;
  left_ -= std::min(left_, needed * max_);
  next_ = last_window_ + size_;
}

}  // namespace weir::slots
