#pragma once

// Time that advances only from event to event: a whole run happens on one thread, and the same seed
// gives the same run.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/timers.h"
#include "weir/clock.h"

namespace weir::simulation {

/// Scheduled events, in order of time; those with the same time, in the order in which they were
/// scheduled. Not thread-safe.
class Events {
 public:
  /// The true time, which is also the store's.
  Nanos now() const noexcept { return now_; }

  struct Id {
    std::uint32_t place = 0;
    std::uint64_t number = 0;
  };
  Id At(Nanos time, std::function<void()> run) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(plans_.size()));
      plans_.emplace_back();
    }
    const Id id{free_.back(), ++planned_};
    free_.pop_back();
    plans_[id.place] = {id.number, std::move(run)};
    heap_.push_back({time < now_ ? now_ : time, id});
    std::push_heap(heap_.begin(), heap_.end());
    return id;
  }
  void Cancel(const Id& id) {
    // Its place becomes free when its time comes.
    if (plans_[id.place].number == id.number) plans_[id.place] = {};
  }

  void RunUntil(Nanos end) {
    while (!heap_.empty() && heap_.front().time <= end) {
      const auto [time, id] = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
      const Plan plan = std::exchange(plans_[id.place], {});
      free_.push_back(id.place);
      if (plan.number == 0) continue;
      now_ = time;
      plan.run();
    }
    now_ = end;
  }

 private:
  struct Plan {
    std::uint64_t number = 0;  // 0: none, or cancelled
    std::function<void()> run;
  };
  struct Due {
    Nanos time;
    Id id;

    /// The heap puts the greatest first, and that is the earliest.
    friend bool operator<(const Due& one, const Due& other) noexcept {
      return one.time != other.time ? one.time > other.time : one.id.number > other.id.number;
    }
  };

  Nanos now_ = 0;
  std::uint64_t planned_ = 0;
  std::vector<Due> heap_;
  std::vector<Plan> plans_;
  std::vector<std::uint32_t> free_;  // places in plans_
};

/// The largest error of a clock's rate: a thousandth.
inline constexpr std::int64_t kWorstPpm = 999;

/// The true time as a Clock, starting at a present-day date.
class StoreClock final : public Clock {
 public:
  explicit StoreClock(const Events& events) : events_(events) {}
  static constexpr Nanos kEpoch = Nanos{1'700'000'000} * 1'000'000'000;
  Nanos Now() const noexcept override { return kEpoch + events_.now(); }

 private:
  const Events& events_;
};

/// A node's clock: wrong by an offset, and its rate by some parts per million.
class NodeClock final : public Clock {
 public:
  NodeClock(const Events& events, Nanos offset, std::int64_t ppm)
      : events_(events), offset_(offset), ppm_(ppm) {}
  Nanos Now() const noexcept override {
    return offset_ + events_.now() + events_.now() * ppm_ / 1'000'000;
  }
  /// The true time until this clock has advanced by `span`.
  Nanos True(Nanos span) const noexcept { return span - span * ppm_ / 1'000'000; }

 private:
  const Events& events_;
  const Nanos offset_;
  const std::int64_t ppm_;
};

/// Whether a node's process runs; it may freeze and continue later.
struct Pulse {
  Nanos stands_until = 0;

  /// When something that is due at `time` really happens.
  Nanos Due(Nanos time) const noexcept { return time < stands_until ? stands_until : time; }
};

/// The timers of a node.
class NodeTimers final : public Timers {
 public:
  NodeTimers(Events& events, const NodeClock& clock, std::shared_ptr<const Pulse> pulse)
      : events_(events), clock_(clock), pulse_(std::move(pulse)) {}
  ~NodeTimers() override {
    for (const Timer& timer : set_) events_.Cancel(timer.event);
  }
  NodeTimers(const NodeTimers&) = delete;
  NodeTimers& operator=(const NodeTimers&) = delete;

  Id After(std::chrono::nanoseconds wait, std::function<void()> run) override {
    const Id id = ++last_;
    set_.push_back({id, Plan(id, events_.now() + clock_.True(wait.count())), std::move(run)});
    return id;
  }
  void Cancel(Id id) override {
    const auto found = std::ranges::find(set_, id, &Timer::id);
    if (found == set_.end()) return;
    events_.Cancel(found->event);
    set_.erase(found);
  }

 private:
  struct Timer {
    Id id;
    Events::Id event;
    std::function<void()> run;
  };
  Events::Id Plan(Id id, Nanos time) {
    return events_.At(time, [this, id] { Ring(id); });
  }
  void Ring(Id id) {
    const auto found = std::ranges::find(set_, id, &Timer::id);
    if (const Nanos late = pulse_->Due(events_.now()); late > events_.now()) {
      found->event = Plan(id, late);
      return;
    }
    const std::function<void()> run = std::move(found->run);
    set_.erase(found);
    run();  // may destroy this
  }

  Events& events_;
  const NodeClock& clock_;
  const std::shared_ptr<const Pulse> pulse_;
  Id last_ = 0;
  std::vector<Timer> set_;  // a few
};

}  // namespace weir::simulation
