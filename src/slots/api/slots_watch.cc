#include "slots/api/slots_watch.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace weir::slots {
namespace {

using telemetry::Label;

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kAskEvery = 2 * kSecond;
constexpr Nanos kNoAnswer = 15 * kSecond;  // a store that does not answer for this long is down
// The next reading of backlogs waits twenty times as long as the last one took, within:
constexpr Nanos kShortestPause = kSecond;
constexpr Nanos kLongestPause = 10 * kSecond;
constexpr Nanos kPauseFactor = 20;
constexpr std::size_t kPlannedWindows = 10'000;

constexpr std::array<std::pair<Outcome, std::string_view>, 8> kOutcomes = {
    {{Outcome::kNew, "new"},
     {Outcome::kExisting, "existing"},
     {Outcome::kConflict, "conflict"},
     {Outcome::kCancelled, "cancelled"},
     {Outcome::kExhausted, "exhausted"},
     {Outcome::kUnknownConfig, "unknown_config"},
     {Outcome::kPast, "past"},
     {Outcome::kUnanswered, "unavailable"}}};

Nanos SteadyNow() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

double Seconds(Millis millis) { return static_cast<double>(std::max<Millis>(millis, 0)) / 1000; }

}  // namespace

SlotsWatch::SlotsWatch(SlotStore& store) : store_(store) { state_->store = &store; }

void SlotsWatch::Close() {
  const std::lock_guard lock(state_->calling);
  state_->store = nullptr;
}

void SlotsWatch::Count(Outcome outcome) noexcept {
  const auto index = static_cast<std::size_t>(outcome);
  if (index < std::size(outcomes_)) outcomes_[index].fetch_add(1, std::memory_order_relaxed);
}

void SlotsWatch::Count(const Claim& claim) noexcept {
  claimed_.fetch_add(claim.events.size(), std::memory_order_relaxed);
  const auto again = std::count_if(claim.events.begin(), claim.events.end(),
                                   [](const Claimed& event) { return event.attempt > 1; });
  redelivered_.fetch_add(static_cast<std::uint64_t>(again), std::memory_order_relaxed);
}

void SlotsWatch::Count(Finished finished, bool failed, bool again) noexcept {
  if (finished == Finished::kLost) lost_.fetch_add(1, std::memory_order_relaxed);
  if (finished == Finished::kGivenUp) failed_.fetch_add(1, std::memory_order_relaxed);
  if (finished != Finished::kOk) return;
  (!failed ? done_ : again ? retried_ : failed_).fetch_add(1, std::memory_order_relaxed);
}

void SlotsWatch::OnSecond(Nanos now) {
  asked_ = std::min(asked_, now);  // the clock may be set back
  if (!state_->asking && now >= asked_ + kAskEvery) {
    asked_ = now;
    state_->asking = true;
    // No config has an empty name; only whether the store answers matters.
    store_.GetConfig({}, [state = state_](const Result<std::optional<Config>>& answer) {
      state->up = answer.ok();
      state->asking = false;
    });
  } else if (state_->asking && now >= asked_ + kNoAnswer) {
    state_->up = false;
  }
  if (state_->reading || SteadyNow() < state_->next_reading) return;
  state_->reading = true;
  state_->began_reading = SteadyNow();
  store_.ListBacklogs(0, [state = state_](Result<std::vector<Backlog>> backlogs) {
    auto read = std::make_shared<std::vector<Standing>>();
    if (backlogs.ok()) {
      for (Backlog& backlog : *backlogs) {
        if (read->size() < kMaxConfigs) read->emplace_back(std::move(backlog), std::nullopt);
      }
    }
    ReadPlans(state, read, 0);
  });
}

// Reads the planned windows of configs with a backlog, one after the other.
void SlotsWatch::ReadPlans(const std::shared_ptr<State>& state,
                           const std::shared_ptr<std::vector<Standing>>& read, std::size_t at) {
  for (; at < read->size() && (*read)[at].first.due == 0; ++at) {
    (*read)[at].second = (*read)[at].first.now;
  }
  if (at == read->size()) {
    const std::lock_guard lock(state->mutex);
    state->standings = std::move(*read);
    const Nanos ended = SteadyNow();
    state->next_reading = ended + std::clamp(kPauseFactor * (ended - state->began_reading),
                                             kShortestPause, kLongestPause);
    state->reading = false;
    return;
  }
  const std::lock_guard lock(state->calling);
  if (state->store == nullptr) return;
  const Backlog& behind = (*read)[at].first;
  state->store->ListWindows(behind.config, behind.window_start, kPlannedWindows,
                            [state, read, at](Result<std::vector<WindowLoad>> windows) {
                              auto& [backlog, caught_up] = (*read)[at];
                              if (windows.ok()) {
                                caught_up = CaughtUpBy(backlog, *windows,
                                                       windows->size() < kPlannedWindows);
                              }
                              ReadPlans(state, read, at + 1);
                            });
}

void SlotsWatch::Collect(telemetry::TextWriter& out) const {
  const auto counter = [&out](std::string_view name, std::string_view help,
                              const std::atomic<std::uint64_t>& value) {
    out.Counter(name, help);
    out.Sample(value.load(std::memory_order_relaxed));
  };
  out.Counter("weir_slots_answers_total", "Requests for a slot, by result.");
  for (const auto& [outcome, name] : kOutcomes) {
    const std::array<Label, 1> labels = {{{"outcome", name}}};
    out.Sample(outcomes_[static_cast<std::size_t>(outcome)].load(std::memory_order_relaxed),
               labels);
  }
  counter("weir_slots_claimed_total", "Events claimed through this node.", claimed_);
  counter("weir_slots_redelivered_total", "Claims of events that had been claimed before.",
          redelivered_);
  out.Counter("weir_slots_finished_total", "Finished claims, by result.");
  const auto ended = [&out](std::string_view how, const std::atomic<std::uint64_t>& count) {
    const std::array<Label, 1> labels = {{{"outcome", how}}};
    out.Sample(count.load(std::memory_order_relaxed), labels);
  };
  ended("done", done_);
  ended("retried", retried_);
  ended("failed", failed_);
  ended("lost", lost_);
  CollectStore(out);
}

void SlotsWatch::CollectStore(telemetry::TextWriter& out) const {
  out.Gauge("weir_slots_store_up", "1 if the last query to the slot store succeeded.");
  out.Sample(std::uint64_t{up() ? 1U : 0U});

  std::vector<Standing> standings;
  {
    const std::lock_guard lock(state_->mutex);
    standings = state_->standings;
  }
  const auto gauge = [&](std::string_view name, std::string_view help, auto value) {
    out.Gauge(name, help);
    for (const auto& [backlog, caught_up] : standings) {
      const std::array<Label, 1> labels = {{{"config", backlog.config}}};
      out.Sample(value(backlog, caught_up), labels);
    }
  };
  using CaughtUp = std::optional<Millis>;
  gauge("weir_slots_due", "Events that are due but not claimed.",
        [](const Backlog& b, const CaughtUp&) { return static_cast<double>(b.due); });
  gauge("weir_slots_late_seconds", "How long the oldest unclaimed event has been due.",
        [](const Backlog& b, const CaughtUp&) {
          return b.oldest_due == 0 ? 0.0 : Seconds(b.now - b.oldest_due);
        });
  gauge("weir_slots_claimed", "Events that are claimed but not finished.",
        [](const Backlog& b, const CaughtUp&) { return static_cast<double>(b.claimed); });
  gauge("weir_slots_dead_letters", "Events that failed permanently.",
        [](const Backlog& b, const CaughtUp&) { return static_cast<double>(b.failed); });
  gauge("weir_slots_window_executions", "Executions granted in the current window.",
        [](const Backlog& b, const CaughtUp&) { return static_cast<double>(b.granted); });
  gauge("weir_slots_window_cap", "The maximum number of executions per window.",
        [](const Backlog& b, const CaughtUp&) { return static_cast<double>(b.cap); });
  gauge("weir_slots_catch_up_seconds",
        "Estimated time to clear the backlog at the cap; -1 if unknown.",
        [](const Backlog& b, const CaughtUp& at) { return at ? Seconds(*at - b.now) : -1.0; });
}

}  // namespace weir::slots
