#include "dispatch/dispatcher.h"

#include <algorithm>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "telemetry/log.h"
#include "weir/clock.h"

namespace weir::app {
namespace {

using std::chrono::milliseconds;
using telemetry::Level;
using telemetry::Log;

constexpr milliseconds kProbePause{500};
constexpr milliseconds kErrorPause{500};
constexpr milliseconds kUnknownPause{5'000};  // for a config that may be created later
constexpr std::size_t kMaxTried = 100'000;
constexpr std::chrono::seconds kDrain{15};
constexpr std::chrono::seconds kAfterTimeout{3};  // Kafka checks once a second for late messages

slots::Millis WallMillis() { return SystemClock::Get().Now() / 1'000'000; }

std::int64_t Random() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  return static_cast<std::int64_t>(engine() >> 1U);
}

std::string Shortened(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  if (text.size() > slots::kMaxErrorBytes) text.resize(slots::kMaxErrorBytes);
  return text;
}

}  // namespace

Dispatcher::Dispatcher(SlotsTarget& source, DeliveryTarget& target, DispatcherOptions options)
    : source_(source), target_(target), options_(std::move(options)) {}

slots::Millis Dispatcher::StoreNow() const { return SteadyMillis() + offset_; }

// A machine that was paused has its clock set when it resumes, and the store's with it if that is
// on the same machine: then the machine's clock shows it before the store does.
slots::Millis Dispatcher::LatestStoreNow() const {
  return std::max(SteadyMillis() + latest_offset_, WallMillis() + latest_wall_offset_);
}

void Dispatcher::NoteClock(slots::Millis store_now, slots::Millis sent, slots::Millis wall_sent) {
  clock_.Note(store_now, sent, SteadyMillis());
  offset_ = clock_.least();
  latest_offset_ = clock_.most();
  wall_clock_.Note(store_now, wall_sent, WallMillis());
  latest_wall_offset_ = wall_clock_.most();
}

void Dispatcher::Run(const std::stop_token& stop) {
  std::stop_source told;
  std::thread finisher([this, token = told.get_token()] { FinishLoop(token); });
  std::thread claimer([this, stop] { ClaimLoop(stop); });
  DeliverLoop(stop);
  claimer.join();
  {
    std::unique_lock lock(mutex_);
    // Left for the dispatchers that claim them when their leases end.
    in_hand_ -= waiting_.size();
    counts_.left += waiting_.size();
    waiting_.clear();
    const auto nothing_left = [this] { return in_hand_ == 0; };
    if (!changed_.wait_for(lock, kDrain, nothing_left)) {
      // Deliveries that began later could not be reported any more.
      lock.unlock();
      target_.Stop();
      lock.lock();
      // Deliveries under way end within their timeout.
      changed_.wait_for(lock, options_.timeout + kAfterTimeout, nothing_left);
    }
  }
  told.request_stop();
  changed_.notify_all();
  finisher.join();
}

void Dispatcher::ClaimLoop(const std::stop_token& stop) {
  const milliseconds poll = std::clamp(options_.ahead / 4, milliseconds(10), milliseconds(200));
  std::size_t first = 0;  // each config in turn: the first one may take all of the room
  while (!stop.stop_requested()) {
    std::size_t room = 0;
    bool away = false;
    {
      const std::lock_guard lock(mutex_);
      room = options_.most - std::min(options_.most, in_hand_);
      away = failing_.count >= kAwayAfter;
      if (away && in_hand_ > 0) room = 0;  // one probe at a time
    }
    std::size_t claimed = 0;
    if (room > 0) ++first;
    for (std::size_t i = 0; i < options_.configs.size() && room > 0; ++i) {
      const std::string& config = options_.configs[(first + i) % options_.configs.size()];
      const auto trouble = troubles_.find(config);
      if (trouble != troubles_.end() && SteadyMillis() < trouble->second.ask_again) continue;
      const std::size_t got = ClaimOnce(config, away ? 1 : std::min(room, slots::kMaxClaim));
      claimed += got;
      room -= std::min(room, got);
      if (away && got > 0) break;
    }
    if (!away && claimed >= slots::kMaxClaim / 2) continue;  // there is more
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, away ? kProbePause : poll, [] { return false; });
  }
  const std::lock_guard lock(mutex_);
  claims_ended_ = true;
  changed_.notify_all();
}

// Only this config waits: it may be misspelt, and the others are not.
void Dispatcher::NoteTrouble(const std::string& config, const Error& error) {
  const slots::Millis now = SteadyMillis();
  Trouble& trouble = troubles_[config];
  const milliseconds pause = error.code == Code::kNotFound ? kUnknownPause : kErrorPause;
  trouble.ask_again = now + pause.count();
  if (!trouble.IsNews(error.message, now)) return;
  if (error.code == Code::kNotFound) {
    const std::string how = "weir slots config set " + config + " --window 4s --max 100";
    return Log(Level::kWarn, "cannot claim events: the config does not exist; waiting for it",
               {{"config", std::string_view(config)},
                {"reason", std::string_view(error.message)},
                {"create_it_with", std::string_view(how)}});
  }
  Log(Level::kWarn, "cannot claim events; will retry",
      {{"config", std::string_view(config)}, {"reason", std::string_view(error.message)}});
}

std::size_t Dispatcher::ClaimOnce(const std::string& config, std::size_t max) {
  const slots::Millis sent = SteadyMillis();
  const slots::Millis wall_sent = WallMillis();
  Result<slots::Claim> claim = source_.Claim({.config = config,
                                              .max = max,
                                              .lease = options_.lease.count(),
                                              .ahead = options_.ahead.count(),
                                              .by = options_.name,
                                              .random = Random()});
  store_up_ = claim.ok() || claim.error().code != Code::kUnavailable;
  if (!claim.ok()) {
    if (!IsRefused(claim.error())) NoteTrouble(config, claim.error());
    return 0;
  }
  ever_claimed_ = true;
  if (troubles_.erase(config) > 0) {
    Log(Level::kInfo, "claiming events again", {{"config", std::string_view(config)}});
  }
  NoteClock(claim->now, sent, wall_sent);
  const std::size_t count = claim->events.size();
  {
    const std::lock_guard lock(mutex_);
    capped_[config] = claim->capped;
    in_hand_ += count;
    counts_.claimed += count;
    for (slots::Claimed& event : claim->events) {
      event.not_after = claim->not_after;
      const slots::Millis at = event.execute_at;
      waiting_.emplace(at, std::move(event));
    }
  }
  if (count > 0) changed_.notify_all();
  return count;
}

void Dispatcher::DeliverLoop(const std::stop_token& stop) {
  std::optional<Steady::time_point> limit;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stop.stop_requested()) {
      if (!limit) limit = Steady::now() + kDrain;
      // A claim may be under way: its events are delivered as well.
      if ((waiting_.empty() && claims_ended_) || Steady::now() >= *limit) break;
    }
    if (waiting_.empty()) {
      changed_.wait_for(lock, milliseconds(100));
      continue;
    }
    const slots::Millis wait = waiting_.begin()->first - StoreNow();
    if (wait > 0) {
      changed_.wait_for(lock, milliseconds(std::min<slots::Millis>(wait, 100)));
      continue;
    }
    const slots::Claimed event = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    ++delivering_;
    lock.unlock();
    const bool held_up = Deliver(event);
    lock.lock();
    // It would hold each of the others up as long.
    if (held_up && stop.stop_requested()) break;
  }
}

bool Dispatcher::Deliver(const slots::Claimed& event) {
  // Whatever the target does must be over before the lease ends, when another dispatcher may
  // deliver. The store's clock is assumed to be as far ahead as it can be.
  const slots::Millis now = LatestStoreNow();
  const milliseconds left(event.lease_until - options_.timeout.count() - now);
  if (now >= event.not_after) {
    GiveBack(event);
    return false;
  }
  if (left.count() < 0) {
    Leave();
    return false;
  }
  const Latest latest = Latest::In(std::min(left, milliseconds(event.not_after - now)));
  const Steady::time_point began = Steady::now();
  target_.Deliver(event, latest,
                  [this, event, began](const Status& status) { Ended(event, began, status); });
  return Steady::now() >= std::min(latest.steady, began + options_.timeout);
}

// It waited for the target for too long: the next to claim it, when its lease ends, delivers it.
void Dispatcher::Leave() {
  {
    const std::lock_guard lock(mutex_);
    ++counts_.left;
    --delivering_;
    --in_hand_;
  }
  changed_.notify_all();
}

// The bank has closed while it waited for the target.
void Dispatcher::GiveBack(const slots::Claimed& event) {
  slots::Finish end{.event_id = event.slot.event_id, .attempt = event.attempt};
  end.failed = true;
  end.error = "not started before the cut-off";
  end.random = Random();
  end.retry_at = event.not_after;
  end.counts = false;
  {
    const std::lock_guard lock(mutex_);
    ++counts_.retried;
    --delivering_;
    ended_.push_back({std::move(end), SteadyMillis()});
  }
  changed_.notify_all();
}

milliseconds Dispatcher::LongestPause(std::int64_t attempt) const {
  const std::int64_t doublings = std::clamp<std::int64_t>(attempt - 1, 0, 20);
  return std::min(options_.longest_pause, options_.first_pause * (std::int64_t{1} << doublings));
}

// When the event failed before; if that was with another dispatcher, a later time: its slot is
// at least half a pause later. If it has not failed, when this delivery began.
Dispatcher::Steady::time_point Dispatcher::TriedBefore(const slots::Claimed& event,
                                                       Steady::time_point began) const {
  if (event.attempt <= 1) return began;
  const auto known = tried_.find(event.slot.event_id);
  if (known != tried_.end()) return known->second;
  const milliseconds ago =
      milliseconds(StoreNow() - event.slot.scheduled) + LongestPause(event.attempt - 1) / 2;
  return std::min(began, Steady::now() - ago);
}

// Requires the lock.
void Dispatcher::TakeFailure(const slots::Claimed& event, Steady::time_point began,
                             slots::Finish& end) {
  const milliseconds longest = LongestPause(event.attempt);
  const milliseconds pause = longest / 2 + milliseconds(Random() % (longest.count() / 2 + 1));
  end.retry_at = LatestStoreNow() + pause.count();
  end.counts = failing_.count < kAwayAfter && last_taken_ > TriedBefore(event, began);
  if (tried_.size() < kMaxTried || tried_.contains(end.event_id)) {
    tried_[end.event_id] = Steady::now();
  }
  end.most_failures = options_.attempts;
  ++counts_.retried;
  NoteFailure(end);
}

// While only one event is tried, it is unknown whether the target or the event is at fault.
void Dispatcher::NoteFailure(const slots::Finish& end) {
  if (failing_.count++ == 0) {
    failing_.since = SteadyMillis();
    failing_.event = end.event_id;
  }
  failing_.several = failing_.several || failing_.event != end.event_id;
  if (failing_.count < kAwayAfter || failing_.told_down) return;
  if (failing_.several) {
    failing_.told = failing_.told_down = true;
    Log(Level::kWarn, "the target is down; probing it until it is back",
        {{"reason", std::string_view(end.error)}});
  } else if (!std::exchange(failing_.told, true)) {
    Log(Level::kWarn, "one event keeps failing and there is no other to deliver; will retry",
        {{"event", std::string_view(end.event_id)}, {"reason", std::string_view(end.error)}});
  }
}

void Dispatcher::NoteSuccess() {
  if (failing_.told) {
    Log(Level::kInfo,
        failing_.told_down ? "the target is back" : "deliveries to the target succeed again",
        {{"away_ms", SteadyMillis() - failing_.since}});
  }
  failing_ = {};
}

void Dispatcher::Ended(const slots::Claimed& event, Steady::time_point began,
                       const Status& status) {
  if (!status.ok() && status.error().code == Code::kDeadlineExceeded) {
    return LatestStoreNow() >= event.not_after ? GiveBack(event) : Leave();
  }
  const slots::Millis at = SteadyMillis();
  slots::Finish end{.event_id = event.slot.event_id, .attempt = event.attempt};
  if (!status.ok()) {
    end.failed = true;
    end.error = Shortened(status.error().message);
    end.random = Random();
  }
  {
    const std::lock_guard lock(mutex_);
    if (status.ok()) {
      NoteSuccess();
      last_taken_ = Steady::now();
      tried_.erase(end.event_id);
      counts_.Delivered(StoreNow() - event.slot.scheduled);
      if (event.attempt > 1) ++counts_.redelivered;
    } else if (status.error().code != Code::kInvalidArgument) {
      TakeFailure(event, began, end);
    } else {
      tried_.erase(end.event_id);
      ++counts_.dead;
      LogDead(end);
    }
    --delivering_;
    ended_.push_back({std::move(end), at});
  }
  changed_.notify_all();
}

}  // namespace weir::app
