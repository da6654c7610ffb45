#pragma once

// Time that passes only from event to event: a whole run happens on one thread, and the same seed
// gives the same run.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/timers.h"
#include "weir/clock.h"

namespace weir::simulation {

/// What will happen, in order of time; what happens at the same time, in the order it was planned.
/// Not thread-safe.
class Events {
 public:
  /// The true time, which is also the store's.
  Nanos now() const noexcept { return now_; }

  using Id = std::pair<Nanos, std::uint64_t>;
  Id At(Nanos time, std::function<void()> run) {
    const Id id{time < now_ ? now_ : time, ++planned_};
    events_.emplace(id, std::move(run));
    return id;
  }
  void Cancel(const Id& id) { events_.erase(id); }

  void RunUntil(Nanos end) {
    while (!events_.empty() && events_.begin()->first.first <= end) {
      auto event = events_.extract(events_.begin());
      now_ = event.key().first;
      event.mapped()();
    }
    now_ = end;
  }

 private:
  Nanos now_ = 0;
  std::uint64_t planned_ = 0;
  std::map<Id, std::function<void()>> events_;
};

/// The farthest that a clock's rate may be off: a thousandth.
inline constexpr std::int64_t kWorstPpm = 999;

/// The true time as a Clock, from a moment in our days on.
class StoreClock final : public Clock {
 public:
  explicit StoreClock(const Events& events) : events_(events) {}
  static constexpr Nanos kEpoch = Nanos{1'700'000'000} * 1'000'000'000;
  Nanos Now() const noexcept override { return kEpoch + events_.now(); }

 private:
  const Events& events_;
};

/// A node's clock: wrong by some offset, and in its rate by some parts in a million.
class NodeClock final : public Clock {
 public:
  NodeClock(const Events& events, Nanos offset, std::int64_t ppm)
      : events_(events), offset_(offset), ppm_(ppm) {}
  Nanos Now() const noexcept override {
    return offset_ + events_.now() + events_.now() * ppm_ / 1'000'000;
  }
  /// How long it truly takes until this clock has counted `span`.
  Nanos True(Nanos span) const noexcept { return span - span * ppm_ / 1'000'000; }

 private:
  const Events& events_;
  const Nanos offset_;
  const std::int64_t ppm_;
};

/// Whether a node's process runs; it may stand still and go on later.
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
    for (const auto& [id, event] : set_) events_.Cancel(event);
  }
  NodeTimers(const NodeTimers&) = delete;
  NodeTimers& operator=(const NodeTimers&) = delete;

  Id After(std::chrono::nanoseconds wait, std::function<void()> run) override {
    const Id id = ++last_;
    Plan(id, events_.now() + clock_.True(wait.count()), std::move(run));
    return id;
  }
  void Cancel(Id id) override {
    const auto found = set_.find(id);
    if (found == set_.end()) return;
    events_.Cancel(found->second);
    set_.erase(found);
  }

 private:
  void Plan(Id id, Nanos time, std::function<void()> run) {
    set_[id] = events_.At(time, [this, id, due = std::move(run)] {
      const Nanos late = pulse_->Due(events_.now());
      if (late > events_.now()) return Plan(id, late, due);
      const std::function<void()> now = due;
      set_.erase(id);
      now();
    });
  }

  Events& events_;
  const NodeClock& clock_;
  const std::shared_ptr<const Pulse> pulse_;
  Id last_ = 0;
  std::map<Id, Events::Id> set_;
};

}  // namespace weir::simulation
