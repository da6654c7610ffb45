#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "execution_fixture.h"
#include "slots/config.h"
#include "slots/window.h"

namespace weir::slots {

/// What is known of an event from the answers about it.
struct Known {
  Ask ask = {};  ///< as it was accepted
  Slot slot = {};
  State state = State::kScheduled;
  std::int64_t attempt = 0;      ///< of the latest claim
  bool may_be_executed = false;  ///< its next delivery must be marked
  Millis lease_until = 0;
  Millis execute_at = 0;
  bool archived = false;
  bool in_backup = false;
};

/// One claim's executions, as early and as late as they can be.
struct Executed {
  Millis from = 0;
  Millis until = 0;
};

/// Random operations on a store, each compared with what the answers before allow: no event is
/// executed again unmarked, before its time or after it was cancelled; the same id gets the same
/// answer; no window sees more executions than its cap.
class RandomModel : public StoreTest {
 protected:
  void Start(std::uint64_t seed, bool resized) {
    random_.seed(seed);
    resized_ = resized;
    run_ = "-" + std::to_string(seed);
    next_ = 0;
    known_.clear();
    active_.clear();
    // Ahead of this machine's clock: what compares with that finds no lease at its end.
    now_ = WindowOf(MachineMillis() + Millis{24} * 3'600'000, 24'000);
    for (const std::string& name : Configs()) NewConfig(name);
  }

  std::int64_t Upto(std::int64_t most) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most + 1));
  }
  bool OneIn(std::int64_t n) { return Upto(n - 1) == 0; }
  std::vector<std::string> Configs() const { return {"pay" + run_, "tax" + run_}; }
  std::string Config() { return Configs()[OneIn(3) ? 1 : 0]; }
  std::string Name(std::int64_t number) const { return "e" + std::to_string(number) + run_; }
  std::string Event() { return Name(Upto(next_)); }
  Millis Time() { return now_ - kWindow + Upto(6 * kWindow); }

  void NewConfig(const std::string& name) {
    slots::Config config{.name = name, .window_size = kWindow, .max_per_window = 3 + Upto(7)};
    if (resized_ && OneIn(2)) config.window_size = 1'000 * (1 + Upto(7));
    if (OneIn(2)) config.tenants = {{"a", 1 + Upto(3)}, {"b", 1}};
    if (OneIn(4)) config.headroom = config.fair_windows = Upto(5);
    config = *CheckConfig(config);
    client().Put(config);
    caps_[name].emplace_back(now_, config.max_per_window);
    active_.insert(name);
  }

  void Assign() {
    std::vector<Ask> asks;
    for (std::int64_t n = 1 + Upto(12); n > 0; --n) {
      const bool again = OneIn(4);
      const std::string event = again ? Event() : Name(++next_);
      const auto known = known_.find(event);
      const char* const tenants[] = {"", "a", "b", "c"};
      Ask ask = client().Ask(event, Config(), Time(), tenants[Upto(3)]);
      ask.payload = OneIn(2) ? "p" : "";
      if (known != known_.end() && !OneIn(3)) ask = known->second.ask;
      asks.push_back(std::move(ask));
    }
    const std::vector<Answer> answers = client().Assign(asks);
    ASSERT_EQ(answers.size(), asks.size());
    // Of two with one id, either may be the first.
    const auto known = known_;
    for (const bool first : {true, false}) {
      for (std::size_t i = 0; i < asks.size(); ++i) {
        if ((answers[i].outcome == Outcome::kNew) != first) continue;
        if (WasThere(answers[i].outcome) || !known.contains(asks[i].event_id)) {
          Assigned(asks[i], answers[i]);
        } else {
          ADD_FAILURE() << asks[i].event_id << " was there";
        }
      }
    }
  }

  void Assigned(const Ask& ask, const Answer& answer) {
    const auto found = known_.find(ask.event_id);
    if (answer.outcome == Outcome::kExhausted) return;
    if (answer.outcome == Outcome::kUnknownConfig) {
      EXPECT_FALSE(active_.contains(ask.config));
      return;
    }
    if (found == known_.end()) {
      ASSERT_EQ(answer.outcome, Outcome::kNew) << ask.event_id;
      EXPECT_TRUE(active_.contains(ask.config));
      CheckSlot(answer.slot, ask.requested);
      known_[ask.event_id] = {
          .ask = ask, .slot = answer.slot, .may_be_executed = ask.requested <= restored_until_};
      return;
    }
    const Known& known = found->second;
    const bool same = known.ask.config == ask.config && known.ask.requested == ask.requested &&
                      known.ask.tenant == ask.tenant &&
                      (known.archived || known.ask.payload == ask.payload);
    // The archive has no payload: two of one batch are compared with each other.
    if (known.archived && answer.outcome == Outcome::kConflict) return;
    EXPECT_EQ(answer.outcome, !same                              ? Outcome::kConflict
                              : known.state == State::kCancelled ? Outcome::kCancelled
                                                                 : Outcome::kExisting)
        << ask.event_id;
    EXPECT_EQ(answer.slot.scheduled, known.slot.scheduled) << ask.event_id;
  }

  void CheckSlot(const Slot& slot, Millis requested) {
    EXPECT_GE(slot.scheduled, requested) << slot.event_id;
    EXPECT_GE(slot.scheduled, slot.window_start) << slot.event_id;
  }

  /// What is claimed and whose lease has not ended by the store's own clock.
  static bool Held(const Known& known) { return known.state == State::kClaimed; }

  void Cancel() {
    const std::string event = Event();
    const auto found = known_.find(event);
    const bool may =
        found != known_.end() && !Held(found->second) && found->second.state != State::kDone;
    std::optional<Slot> slot;
    try {
      slot = client().Cancel(event);
      EXPECT_EQ(slot.has_value(), found != known_.end()) << event;
      EXPECT_TRUE(may || !slot) << event;
    } catch (const std::runtime_error&) {
      EXPECT_FALSE(may) << event;
    }
    if (slot) found->second.state = State::kCancelled;
  }

  void Move(bool restore) {
    const std::string event = Event();
    MoveRequest request{.event_id = event, .random = static_cast<std::int64_t>(random_() >> 1U)};
    if (!OneIn(3)) request.requested = Time();
    if (OneIn(3)) request.config = Config();
    const auto found = known_.find(event);
    const State state = found == known_.end() ? State::kDone : found->second.state;
    const bool may = found != known_.end() && !found->second.archived &&
                     (restore ? state == State::kCancelled
                              : state == State::kScheduled || state == State::kFailed);
    std::optional<Answer> answer;
    try {
      answer = restore ? client().Restore(request) : client().Reschedule(request);
      EXPECT_EQ(answer.has_value(), found != known_.end()) << event;
      EXPECT_TRUE(may || !answer) << event;
    } catch (const std::runtime_error&) {
      EXPECT_FALSE(may) << event;
    }
    if (!answer || answer->outcome != Outcome::kNew) return;
    Known& known = found->second;
    known.ask.requested = request.requested.value_or(known.ask.requested);
    if (!request.config.empty()) known.ask.config = request.config;
    CheckSlot(answer->slot, known.ask.requested);
    EXPECT_EQ(answer->slot.config, known.ask.config);
    known.slot = answer->slot;
    known.state = State::kScheduled;
    known.may_be_executed = known.may_be_executed || known.in_backup;
  }

  void ClaimSome(const std::string& config, std::size_t max, Millis ahead) {
    for (auto& [event, known] : known_) {
      if (Held(known) && known.ask.config == config && known.lease_until <= now_) {
        known.state = State::kScheduled;
      }
    }
    const Millis lease = 5'000 + Upto(10'000);
    const Claim claim = client().Claim(
        {.config = config, .max = max, .lease = lease, .ahead = ahead, .by = "t", .now = now_});
    for (const Claimed& given : claim.events) {
      const std::string& event = given.slot.event_id;
      ASSERT_TRUE(known_.contains(event)) << event;
      Known& known = known_[event];
      EXPECT_EQ(known.state, State::kScheduled) << event;
      EXPECT_EQ(known.ask.config, config) << event;
      EXPECT_EQ(given.slot.scheduled, known.slot.scheduled) << event;
      EXPECT_EQ(given.payload, known.ask.payload) << event;
      EXPECT_LE(known.slot.scheduled, now_ + ahead) << event;
      EXPECT_GE(given.execute_at, std::max(now_, known.slot.scheduled)) << event;
      EXPECT_EQ(given.lease_until, given.execute_at + lease) << event;
      EXPECT_GT(given.attempt, known.attempt) << event;
      EXPECT_GT(given.attempt, known.may_be_executed ? 1 : 0) << event;
      known.may_be_executed = true;
      known.attempt = given.attempt;
      known.state = State::kClaimed;
      known.execute_at = given.execute_at;
      known.lease_until = given.lease_until;
      executed_[config][{event, given.attempt}] = {given.execute_at, given.lease_until};
    }
  }

  void FinishSome() {
    std::vector<Finish> ends;
    std::vector<std::string> events;
    for (const auto& [event, known] : known_) {
      const bool open = Held(known) && known.execute_at <= now_ && known.lease_until > now_;
      if (open && !OneIn(3)) events.push_back(event);
    }
    if (events.empty()) return;
    for (const std::string& event : events) {
      const Known& known = known_[event];
      Finish end{.event_id = event, .attempt = known.attempt, .now = now_};
      end.failed = OneIn(3);
      if (end.failed && !OneIn(3)) end.retry_at = Time();
      if (end.retry_at) end.most_failures = Upto(3);
      end.random = static_cast<std::int64_t>(random_() >> 1U);
      end.ago = Upto(now_ - known.execute_at);
      ends.push_back(end);
      if (OneIn(10)) ends.push_back(end);  // told twice
    }
    ends.push_back({.event_id = events[0], .attempt = known_[events[0]].attempt + 1, .now = now_});
    const std::vector<Finished> told = client().Finish(ends);
    EXPECT_EQ(told.back(), Finished::kLost);
    // Of two reports of one end it does not matter which is the first.
    for (const bool first : {true, false}) {
      for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
        if ((told[i] != Finished::kAlready) == first) Ended(ends[i], told[i]);
      }
    }
  }

  void Ended(const Finish& end, Finished told) {
    Known& known = known_[end.event_id];
    if (told == Finished::kAlready) {
      EXPECT_NE(known.state, State::kClaimed) << end.event_id;
      return;
    }
    ASSERT_TRUE(told == Finished::kOk || told == Finished::kGivenUp) << end.event_id;
    EXPECT_EQ(known.state, State::kClaimed) << end.event_id;
    executed_[known.ask.config][{end.event_id, end.attempt}].until = now_ - end.ago;
    if (!end.failed) {
      known.state = State::kDone;
    } else if (!end.retry_at || told == Finished::kGivenUp) {
      known.state = State::kFailed;
    } else {
      known.state = State::kScheduled;
      known.slot = client().Look(end.event_id)->slot;
    }
  }

  void RetireSome() {
    const Millis before = now_ - Upto(3 * kWindow);
    client().Retire({.over_before = before, .archived_before = 0, .limit = 5});
    for (auto& [event, known] : known_) {
      if (known.archived || (known.state != State::kDone && known.state != State::kCancelled)) {
        continue;
      }
      known.archived = client().Look(event)->archived;
    }
  }

  void RestoreBackup() {
    const Restored restored = client().MarkRestored(now_);
    restored_until_ = std::max(restored_until_, restored.until);
    for (auto& [event, known] : known_) {
      const bool open = known.state == State::kScheduled || known.state == State::kCancelled;
      const bool was_due = open && known.slot.scheduled <= restored.until;
      known.may_be_executed = known.may_be_executed || was_due;
      known.in_backup = true;
    }
  }

  void CheckEvent(const std::string& event) {
    const auto found = known_.find(event);
    const std::optional<slots::Event> seen = client().Look(event);
    ASSERT_EQ(seen.has_value(), found != known_.end()) << event;
    if (!seen) return;
    const Known& known = found->second;
    EXPECT_EQ(seen->slot, (Slot{event, known.ask.config, known.ask.tenant, known.ask.requested,
                                known.slot.window_start, known.slot.scheduled}))
        << event;
    EXPECT_STREQ(StateName(seen->state), StateName(known.state)) << event;
    EXPECT_EQ(seen->archived, known.archived) << event;
  }

  /// The largest cap that was in force while claims could be made that are open in the window: they
  /// last for 15 seconds at most, and are made a window ahead at most.
  std::int64_t CapOf(const std::string& config, Millis window) {
    std::int64_t cap = 0;
    std::int64_t in_force = 0;
    for (const auto& [since, max] : caps_[config]) {
      if (since < window - 5 * kWindow) {
        in_force = max;
      } else if (since < window + kWindow) {
        cap = std::max(cap, max);
      }
    }
    return std::max(cap, in_force);
  }

  void CheckExecutions() {
    if (resized_) return;
    for (const auto& [config, executions] : executed_) {
      std::map<Millis, std::int64_t> seen;
      for (const auto& [claim, executed] : executions) {
        const Millis last = std::max(executed.from, executed.until);
        for (Millis w = WindowOf(executed.from, kWindow); w <= last; w += kWindow) ++seen[w];
      }
      for (const auto& [window, count] : seen) {
        EXPECT_LE(count, CapOf(config, window)) << config << " " << FormatInstant(window);
      }
    }
  }

  std::mt19937_64 random_;
  std::string run_;
  bool resized_ = false;
  Millis now_ = 0;
  std::int64_t next_ = 0;
  Millis restored_until_ = 0;
  std::map<std::string, Known> known_;
  std::set<std::string> active_;
  std::map<std::string, std::vector<std::pair<Millis, std::int64_t>>> caps_;
  std::map<std::string, std::map<std::pair<std::string, std::int64_t>, Executed>> executed_;
};

}  // namespace weir::slots
