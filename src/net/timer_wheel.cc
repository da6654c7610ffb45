#include "net/timer_wheel.h"

#include <algorithm>
#include <utility>

namespace weir::net {

void TimerWheel::Entry::Unlink() noexcept {
  if (link_ == nullptr) return;
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
  next_ = nullptr;
  link_ = nullptr;
}

TimerWheel::~TimerWheel() {
  const auto let_go = [](Entry*& first) {
    while (first != nullptr) first->Unlink();
  };
  std::for_each(slots_.begin(), slots_.end(), let_go);
  std::for_each(due_.begin(), due_.end(), let_go);
}

void TimerWheel::Link(Entry& entry) noexcept {
  entry.Unlink();
  // A deadline beyond the wheel's horizon is checked again when the wheel comes round.
  entry.linked_at_ = std::min(std::max(entry.deadline_, now_ + 1), now_ + kSlots - 1);
  Entry*& head = slots_[entry.linked_at_ % kSlots];
  entry.next_ = head;
  entry.link_ = &head;
  if (head != nullptr) head->link_ = &entry.next_;
  head = &entry;
}

void TimerWheel::Advance() {
  ++now_;
  // The whole slot is taken off first: OnDeadline may link entries again or destroy any of them.
  Entry* const first = std::exchange(slots_[now_ % kSlots], nullptr);
  if (first == nullptr) return;
  due_.push_back(first);
  first->link_ = &due_.back();
}

bool TimerWheel::RunDue(std::size_t most) {
  while (!due_.empty()) {
    if (due_.front() == nullptr) {
      due_.pop_front();
      continue;
    }
    Entry& entry = *due_.front();
    if (entry.deadline_ > now_) {
      Link(entry);
      continue;
    }
    if (most-- == 0) return true;
    entry.Unlink();
    entry.OnDeadline();
  }
  return false;
}

}  // namespace weir::net
