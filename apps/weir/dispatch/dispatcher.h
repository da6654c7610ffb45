#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "dispatch/delivery_target.h"
#include "dispatch/dispatch_metrics.h"
#include "slots/execution.h"
#include "slots/slots_target.h"
#include "slots/store_clock.h"

namespace weir::app {

struct DispatcherOptions {
  std::vector<std::string> configs = {};
  std::string name = {};  ///< for the history of events
  std::chrono::milliseconds lease{30'000};
  std::chrono::milliseconds ahead{500};     ///< how long before their time events are claimed
  std::chrono::milliseconds timeout{5000};  ///< of one delivery
  std::size_t most = 5'000;                 ///< events in hand
  int attempts = 20;                        ///< failures of its own that make a dead letter
  std::chrono::milliseconds first_pause{1'000};
  std::chrono::milliseconds longest_pause{60'000};
  /// Called on another thread if the service refuses the key (401, 403) before any claim succeeds.
  /// Later refusals are retried: keys may be rotated.
  std::function<void(const Error&)> on_refused = {};
};

/// Claims due events and delivers each at its time. Three threads: one claims ahead, one delivers
/// due events, one reports to the store how claims ended, in batches. When the target is down, only
/// an occasional probe is claimed.
///
/// A failure counts against an event only if the target has accepted another event since this one
/// was tried before: otherwise it says something about the target, not about the event.
///
/// For the thread that created it; Run blocks until `stop` is requested and all work is reported.
class Dispatcher {
 public:
  /// `source` and `target` must outlive this; `target` must report the end of every delivery first.
  Dispatcher(SlotsTarget& source, DeliveryTarget& target, DispatcherOptions options);

  void Run(const std::stop_token& stop);
  /// Thread-safe.
  DispatchStanding standing() const;

 private:
  static constexpr int kAwayAfter = 5;  // failures in a row

  using Steady = std::chrono::steady_clock;

  /// A delivery that has ended.
  struct Over {
    slots::Finish end = {};
    slots::Millis at = 0;  ///< of the steady clock
  };

  /// Why the store refuses or fails; times of the steady clock.
  struct Trouble {
    std::string reason = {};
    slots::Millis ask_again = 0;
    slots::Millis tell_again = 0;

    /// Whether to log it: the same reason is logged once a minute.
    bool IsNews(const std::string& why, slots::Millis now);
  };

  /// Failed deliveries since the last success.
  struct Failing {
    int count = 0;
    slots::Millis since = 0;  ///< of the steady clock
    std::string event = {};   ///< the first one
    bool several = false;     ///< others failed as well
    bool told = false;        ///< it was logged that the event fails
    bool told_down = false;   ///< it was logged that the target is down
  };

  static slots::Millis SteadyMillis();
  static void LogDead(const slots::Finish& end);

  void ClaimLoop(const std::stop_token& stop);
  void DeliverLoop(const std::stop_token& stop);
  void FinishLoop(const std::stop_token& delivered);
  void NoteTrouble(const std::string& config, const Error& error);
  /// Whether the key is of no use; then it reports that.
  bool IsRefused(const Error& error) const;
  std::size_t ClaimOnce(const std::string& config, std::size_t max);
  /// Whether the target held this thread up until the deadline of the delivery.
  bool Deliver(const slots::Claimed& event);
  void Leave();
  /// Reschedules it to the next opening of the calendar.
  void GiveBack(const slots::Claimed& event);
  void Ended(const slots::Claimed& event, Steady::time_point began, const Status& status);
  Steady::time_point TriedBefore(const slots::Claimed& event, Steady::time_point began) const;
  void NoteFailure(const slots::Finish& end);
  void NoteSuccess();
  void TakeFailure(const slots::Claimed& event, Steady::time_point began, slots::Finish& end);
  void TellStore(std::vector<Over> over, const std::stop_token& stop);
  void TellHalves(std::vector<Over> over, const std::stop_token& stop);
  void Told(const std::vector<slots::Finish>& ends,
            const Result<std::vector<slots::Finished>>& told);
  /// The store's clock, or a little behind it, never ahead.
  slots::Millis StoreNow() const;
  /// The store's clock, or ahead of it: for what must be over before the store thinks it is.
  slots::Millis LatestStoreNow() const;
  void NoteClock(slots::Millis store_now, slots::Millis sent, slots::Millis wall_sent);
  std::chrono::milliseconds LongestPause(std::int64_t attempt) const;

  SlotsTarget& source_;
  DeliveryTarget& target_;
  const DispatcherOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::multimap<slots::Millis, slots::Claimed> waiting_;  // by the time of execution
  std::vector<Over> ended_;
  std::size_t in_hand_ = 0;             // waiting, being delivered, or not reported yet
  std::size_t delivering_ = 0;          // of those
  bool claims_ended_ = false;           // no more events are added to waiting_
  std::map<std::string, bool> capped_;  // whether the last claim of a config had to stop at its cap
  Failing failing_;
  // On this machine's clock: the store's changes are known only to the millisecond.
  Steady::time_point last_taken_ = Steady::time_point::min();  // by the target
  std::unordered_map<std::string, Steady::time_point> tried_;  // events that failed here, and when
  DispatchCounts counts_;
  bool ever_claimed_ = false;                // of the claiming thread: a claim has succeeded
  std::map<std::string, Trouble> troubles_;  // of the claiming thread, by config
  std::optional<Trouble> report_trouble_;    // of the finishing thread
  // Of the claiming thread: the store's clock seen from the steady one, and from the machine's.
  slots::StoreClock clock_;
  slots::StoreClock wall_clock_;
  // Store clock less steady clock, milliseconds: at least, and at most.
  std::atomic<std::int64_t> offset_{0};
  std::atomic<std::int64_t> latest_offset_{0};
  std::atomic<std::int64_t> latest_wall_offset_{0};  // at most, less the machine's clock
  std::atomic<bool> store_up_{false};                // it answered when it was last asked
};

}  // namespace weir::app
