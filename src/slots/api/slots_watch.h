#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "slots/slot_store.h"
#include "telemetry/metrics.h"
#include "weir/clock.h"

namespace weir::slots {

/// Counts what the API answers, polls the store periodically, and exports both as metrics. Work of
/// dispatchers that use the database without the service appears in the gauges only.
///
/// Thread-safe, except that OnSecond must be called on one thread and return before Close.
class SlotsWatch {
 public:
  /// Configs beyond this number have no gauges of their own.
  static constexpr std::size_t kMaxConfigs = 100;

  /// `store` must live until Close.
  explicit SlotsWatch(SlotStore& store);
  ~SlotsWatch() { Close(); }
  SlotsWatch(const SlotsWatch&) = delete;
  SlotsWatch& operator=(const SlotsWatch&) = delete;

  void Count(Outcome outcome) noexcept;
  void Count(const Claim& claim) noexcept;
  void Count(Finished finished, bool failed, bool again) noexcept;

  /// Call it every second; `now` is the time since the epoch.
  void OnSecond(Nanos now);
  /// Stops calling the store, also from late answers.
  void Close();
  /// Whether the store answered the last probe.
  bool up() const noexcept { return state_->up; }

  void Collect(telemetry::TextWriter& out) const;
  /// Only what was read from the store, for processes without the API.
  void CollectStore(telemetry::TextWriter& out) const;

 private:
  using Standing = std::pair<Backlog, std::optional<Millis>>;  // and when it is caught up

  // Outlives late answers.
  struct State {
    std::atomic<bool> up{true};
    std::atomic<bool> asking{false};
    std::atomic<bool> reading{false};
    // Times of the steady clock; accessed only by the thread that sets or clears `reading`.
    Nanos began_reading = 0;
    Nanos next_reading = 0;
    std::mutex mutex;
    std::vector<Standing> standings;
    // Recursive: a store that refuses a call answers it immediately, and the next call follows.
    std::recursive_mutex calling;
    SlotStore* store = nullptr;  // under `calling`; null: closed
  };
  static void ReadPlans(const std::shared_ptr<State>& state,
                        const std::shared_ptr<std::vector<Standing>>& read, std::size_t at);

  SlotStore& store_;
  Nanos asked_ = 0;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::atomic<std::uint64_t> outcomes_[9] = {};  // by Outcome
  std::atomic<std::uint64_t> claimed_{0};
  std::atomic<std::uint64_t> redelivered_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> retried_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace weir::slots
