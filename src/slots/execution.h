#pragma once

// What happens to an event after it has a slot: scheduled → claimed → done | failed, or cancelled.
//
// The cap holds at execution. A claim is granted for one window of time, the one in which the event
// is to be executed, and a window grants at most max_per_window, less the earlier grants that may
// still be executed in it: claims not finished when the window began. Every execution lies
// between its claim and its end (done, failed, or the end of the lease), so no window sees more
// executions than its cap, whatever the delays. Overdue events get no special treatment: they
// compete for the same grants in the order of their times.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "slots/slot.h"

namespace weir::slots {

inline constexpr std::size_t kMaxClaim = 1'000;
inline constexpr Millis kMinLease = 100;
inline constexpr Millis kMaxLease = Millis{24} * 3'600'000;
inline constexpr Millis kMaxAhead = 60'000;
inline constexpr std::size_t kMaxErrorBytes = 500;
inline constexpr std::int64_t kMaxFailures = 1'000'000;
inline constexpr std::size_t kMaxDuePage = 1'000;

/// The numbers are stored.
enum class State : std::uint8_t {
  kScheduled = 0,
  kClaimed = 1,
  kDone = 2,
  kFailed = 3,     ///< a dead letter; rescheduling it retries it
  kCancelled = 4,  ///< holds no place in its window
  kExternal = 5,   ///< assigned before executions were recorded; never claimed unless rescheduled
};

/// "SCHEDULED", "CLAIMED", …
const char* StateName(State state) noexcept;
std::optional<State> ParseState(std::string_view name) noexcept;

/// Something that happened to an event and cannot be seen from its current state.
struct Change {
  Millis at = 0;
  std::string what = {};    ///< cancelled, restored, rescheduled, failed, lease-ended, kFromBackup
  std::string detail = {};  ///< the slot it had, or the error
};

/// Change::what of an event that may have been executed after the backup it was restored from.
inline constexpr const char* kFromBackup = "backup-restored";

/// Everything known about one event.
struct Event {
  Slot slot = {};
  State state = State::kScheduled;
  std::int64_t attempts = 0;
  Millis created_at = 0;   ///< 0: unknown
  Millis claimed_at = 0;   ///< the latest claim; 0: never claimed
  Millis lease_until = 0;  ///< while claimed
  Millis finished_at = 0;  ///< done, failed or cancelled; else 0
  std::string claimed_by = {};
  std::string error = {};
  std::string payload = {};
  std::vector<Change> history = {};  ///< oldest first; the latest few
  bool archived = false;             ///< is no longer in the live tables: no payload, no history
};

struct ClaimRequest {
  std::string config = {};
  std::size_t max = 1;    ///< at most kMaxClaim
  Millis lease = 30'000;  ///< counted from the moment at which an event is to be executed
  Millis ahead = 0;       ///< also claims those due this soon; each is executed at its time
  std::string by = {};    ///< who claims, for the event's history
  bool noted = false;     ///< keep a ClaimNote: the claim is in no audit log otherwise
  Millis now = 0;         ///< 0: the store's clock; anything else is for tests
  std::int64_t random = 0;
};

/// An event that no one else can claim until lease_until.
struct Claimed {
  Slot slot = {};
  std::int64_t attempt = 1;  ///< identifies this claim when it is finished; above 1: redelivered
  Millis execute_at = 0;  ///< never before slot.scheduled; overdue ones are spread over the window
  Millis lease_until = 0;
  std::string payload = {};
  Millis not_after = kMaxInstant;  ///< for the executor: see Claim
};

struct Claim {
  Millis now = 0;  ///< the store's clock
  std::vector<Claimed> events = {};
  bool capped = false;  ///< more are due, but their window has granted its maximum
  /// The cut-off of the calendar: an execution that has not begun by then must not begin.
  Millis not_after = kMaxInstant;
};

/// How one claim ended.
struct Finish {
  std::string event_id = {};
  std::int64_t attempt = 0;
  bool failed = false;
  std::string error = {};               ///< with failed
  std::optional<Millis> retry_at = {};  ///< with failed: the event takes a slot again
  std::int64_t random = 0;              ///< for that slot
  /// With retry_at: whether the failure counts against the event. A failure that says nothing about
  /// the event does not, such as that of a target that is down for all.
  bool counts = true;
  /// With retry_at: after this many counted failures, the event is a dead letter instead; 0: never.
  std::int64_t most_failures = 0;
  /// The execution ended at most this long before this call. An age is sent rather than a time, so
  /// an end may be recorded late by the duration of the call, but never early, whatever clocks do.
  Millis ago = 0;
  Millis now = 0;  ///< 0: the store's clock; anything else is for tests
};

/// When the execution of a claim made at `claimed_at` ended, by the store's clock.
constexpr Millis EndOf(const Finish& end, Millis claimed_at, Millis store_now) noexcept {
  return std::max(claimed_at, (end.now > 0 ? end.now : store_now) - end.ago);
}

enum class Finished : std::uint8_t {
  kOk = 0,
  kAlready = 1,  ///< reported before, with the same outcome
  kLost = 2,     ///< the event has been claimed again since, or is not claimed at all
  kUnknown = 3,  ///< no such event
  kGivenUp = 4,  ///< this was the last allowed failure: now a dead letter despite retry_at
};

/// How many events of one config a caller claimed within a minute, directly on the store. Written
/// in the transaction of the claim, so every such claim has one.
struct ClaimNote {
  Millis minute = 0;  ///< start of the minute
  std::string config = {};
  std::string by = {};
  std::int64_t events = 0;

  friend bool operator==(const ClaimNote&, const ClaimNote&) = default;
};
inline constexpr Millis kNoteMillis = 60'000;
inline constexpr std::size_t kMaxNotes = 200;

/// One page of events; after_time and after_event are the last one of the previous page.
struct DueQuery {
  std::string config = {};
  Millis before = 0;
  std::size_t limit = 100;  ///< at most kMaxDuePage
  State state = State::kScheduled;
  Millis after_time = 0;
  std::string after_event = {};
};

/// What may be archived or dropped. The archive keeps an event's slot, state and times: requests
/// for its ID are answered as before, but its payload and history are gone. An ID that is dropped
/// from the archive is forgotten.
struct Retention {
  Millis over_before = 0;      ///< archive what was done or cancelled before; 0: nothing
  Millis archived_before = 0;  ///< drop what was done or cancelled before; 0: nothing
  std::size_t limit = 1'000;   ///< of each, at most kMaxBatch
};

struct Retired {
  std::size_t archived = 0;
  std::size_t dropped = 0;
};

/// What was done to a store after it was restored from a backup.
struct Restored {
  Millis newest = 0;        ///< the last change in the backup; 0: none
  Millis until = 0;         ///< events due by then may have been executed
  std::int64_t marked = 0;  ///< such events that the backup does not show as finished
};

/// The execution backlog of one config.
struct Backlog {
  std::string config = {};
  Millis now = 0;
  Millis window_start = 0;  ///< the present window
  Millis window_size = 0;
  std::int64_t cap = 0;
  std::int64_t due = 0;      ///< scheduled and due by now; from kMaxCounted on: at least this many
  Millis oldest_due = 0;     ///< 0: none
  std::int64_t later = 0;    ///< scheduled and not due yet: the rest of this window, and all later
  std::int64_t claimed = 0;  ///< granted and not finished
  std::int64_t granted = 0;  ///< in the present window
  std::int64_t failed = 0;   ///< dead letters; kMaxCounted: at least this many
  bool executed = false;     ///< an event of this config has been claimed before
  Calendar calendar = {};    ///< of the config
};
inline constexpr std::int64_t kMaxCounted = 1'000'000;

/// When the backlog will be cleared if every window from the present one on is used to its cap:
/// `windows` are the present one and later ones, in order, and `all` says whether these are all of
/// them. nullopt: unknown, because not all events or windows were counted.
std::optional<Millis> CaughtUpBy(const Backlog& backlog, const std::vector<WindowLoad>& windows,
                                 bool all = true);

/// How long the execution of `late` overdue events of one claim is spread over: at four times the
/// cap's rate. A quarter of the cap takes a whole window; with a large cap, one event is immediate.
constexpr Millis LateSpan(Millis window_size, std::int64_t cap, std::int64_t late) noexcept {
  return std::max<Millis>(1, 4 * window_size * late / cap);
}

/// Checks the bounds of a claim; the error uses the field's name on the wire.
Status CheckClaim(const ClaimRequest& request);

}  // namespace weir::slots
