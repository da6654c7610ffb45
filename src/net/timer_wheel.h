#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace weir::net {

/// Coarse deadlines for many connections at almost no cost: a request that pushes its connection's
/// deadline further away writes one integer. Only when the wheel reaches the place where an entry
/// was linked does it check whether the deadline has moved, and link it further on.
///
/// Thread safety: belongs to one reactor's thread.
class TimerWheel {
 public:
  /// Deadlines are rounded up to whole ticks.
  static constexpr std::chrono::milliseconds kTick{100};

  /// Something with a deadline. Unlinks itself when destroyed. Thread safety: as the wheel.
  class Entry {
   public:
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    /// Called once when the deadline has passed; may set a new one or destroy the entry.
    virtual void OnDeadline() = 0;

   protected:
    Entry() = default;
    virtual ~Entry() { Unlink(); }

   private:
    friend class TimerWheel;
    void Unlink() noexcept;

    Entry* next_ = nullptr;
    Entry** link_ = nullptr;  // what points at this entry; null: not linked
    std::uint64_t deadline_ = 0;
    std::uint64_t linked_at_ = 0;  // the tick at which the wheel will look at this entry
  };

  TimerWheel() = default;
  /// Entries may outlive it; they have no deadline then.
  ~TimerWheel();
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  /// Sets the entry's deadline to `after` from the last tick, earlier or later than it was.
  void Set(Entry& entry, std::chrono::milliseconds after) noexcept {
    entry.deadline_ = now_ + TicksFor(after);
    if (entry.link_ == nullptr || entry.deadline_ < entry.linked_at_) Link(entry);
  }

  void Cancel(Entry& entry) noexcept { entry.Unlink(); }

  /// Advances by one tick and calls OnDeadline of the entries that are due.
  void Tick() {
    Advance();
    while (RunDue(kSlots)) {
    }
  }

  /// Like Tick in two steps, for callers with other work in between: thousands of connections that
  /// were opened together are due together. RunDue calls OnDeadline of `most` entries; false: no
  /// more are due.
  void Advance();
  bool RunDue(std::size_t most);

 private:
  static constexpr std::size_t kSlots = 1024;

  static std::uint64_t TicksFor(std::chrono::milliseconds after) noexcept {
    const auto ticks = (after + kTick - std::chrono::milliseconds(1)) / kTick;
    // One more, since the current tick is already partly over.
    return ticks < 0 ? 1 : static_cast<std::uint64_t>(ticks) + 1;
  }
  void Link(Entry& entry) noexcept;

  std::array<Entry*, kSlots> slots_{};
  std::deque<Entry*> due_;  // slots of this and earlier ticks that are not finished
  std::uint64_t now_ = 0;
};

}  // namespace weir::net
