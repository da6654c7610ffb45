#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "slots/slot_store.h"
#include "weir/clock.h"

namespace weir::slots {

struct RetentionOptions {
  std::chrono::milliseconds keep{0};      ///< in the live tables, once finished; 0: forever
  std::chrono::milliseconds keep_ids{0};  ///< in the archive; 0: forever
};

/// Moves old events out of the live tables: a small set every second while there are any; otherwise
/// it checks once a minute.
///
/// Thread safety: call OnSecond from one thread; any thread may read the counts.
class Retirement {
 public:
  /// `store` must outlive this and its calls.
  Retirement(SlotStore& store, RetentionOptions options) : store_(store), options_(options) {}

  /// Call it every second; `now` is the time since the epoch.
  void OnSecond(Nanos now);

  std::uint64_t archived() const noexcept { return state_->archived; }
  std::uint64_t dropped() const noexcept { return state_->dropped; }

 private:
  // Outlives late answers.
  struct State {
    std::atomic<bool> busy{false};
    std::atomic<bool> more{false};
    std::atomic<std::uint64_t> archived{0};
    std::atomic<std::uint64_t> dropped{0};
  };

  SlotStore& store_;
  const RetentionOptions options_;
  Nanos next_ = 0;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace weir::slots
