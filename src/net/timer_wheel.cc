#include "net/timer_wheel.h"

#include <algorithm>

namespace weir::net {

void TimerWheel::Entry::Unlink() noexcept {
  if (link_ == nullptr) return;
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
  next_ = nullptr;
  link_ = nullptr;
}

TimerWheel::~TimerWheel() {
  for (Entry*& slot : slots_) {
    while (slot != nullptr) slot->Unlink();
  }
}

void TimerWheel::Link(Entry& entry) noexcept {
  entry.Unlink();
  // A deadline beyond the wheel's horizon is looked at again when the wheel comes round.
  entry.linked_at_ = std::min(std::max(entry.deadline_, now_ + 1), now_ + kSlots - 1);
  Entry*& head = slots_[entry.linked_at_ % kSlots];
  entry.next_ = head;
  entry.link_ = &head;
  if (head != nullptr) head->link_ = &entry.next_;
  head = &entry;
}

void TimerWheel::Tick() {
  ++now_;
  // The whole slot is taken off first: OnDeadline may link entries again or destroy any of them.
  Entry* due = slots_[now_ % kSlots];
  slots_[now_ % kSlots] = nullptr;
  if (due != nullptr) due->link_ = &due;
  while (due != nullptr) {
    Entry& entry = *due;
    if (entry.deadline_ > now_) {
      Link(entry);
      continue;
    }
    entry.Unlink();
    entry.OnDeadline();
  }
}

}  // namespace weir::net
