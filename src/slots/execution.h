#pragma once

// What happens to an event after it has a slot: scheduled → claimed → done | failed, or cancelled.
//
// The cap holds at execution. A claim is granted for one window of time, the one in which the event
// is to be executed, and a window grants at most max_per_window, less what may still be executed in
// it of earlier grants: claims that were not finished when the window began. Every execution lies
// between its claim and its end (done, failed, or the end of the lease), so no window sees more
// executions than its cap, whatever the delays; and overdue events are nothing special, they
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
  kExternal = 5,   ///< assigned before executions were kept; never claimed unless rescheduled
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

/// What happened to an event that may have been executed after the backup that it comes from.
inline constexpr const char* kFromBackup = "backup-restored";

/// All that is known of one event.
struct Event {
  Slot slot = {};
  State state = State::kScheduled;
  std::int64_t attempts = 0;
  Millis created_at = 0;   ///< 0: not known
  Millis claimed_at = 0;   ///< the latest claim; 0: never claimed
  Millis lease_until = 0;  ///< while claimed
  Millis finished_at = 0;  ///< done, failed or cancelled; else 0
  std::string claimed_by = {};
  std::string error = {};
  std::string payload = {};
  std::vector<Change> history = {};  ///< oldest first; the latest few
  bool archived = false;             ///< has left the live tables: no payload, no history
};

struct ClaimRequest {
  std::string config = {};
  std::size_t max = 1;    ///< at most kMaxClaim
  Millis lease = 30'000;  ///< from the moment that an event is to be executed
  Millis ahead = 0;       ///< also those due so soon, for who executes each at its time
  std::string by = {};    ///< who claims, for the event's history
  bool noted = false;     ///< keep a ClaimNote: nobody else writes to an audit log
  Millis now = 0;         ///< 0: the store's clock; anything else is for tests
  std::int64_t random = 0;
};

/// An event that is the caller's alone until lease_until.
struct Claimed {
  Slot slot = {};
  std::int64_t attempt = 1;  ///< names this claim when it is finished; above 1: redelivered
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
  /// With retry_at: whether the failure counts against the event. One does not that says nothing
  /// about it, such as that of a target that is down for all.
  bool counts = true;
  /// With retry_at: with so many failures that count, the event is a dead letter instead; 0: never.
  std::int64_t most_failures = 0;
  /// How long before this call the execution was over, or less. Told by its age, an end is counted
  /// late by the time that the call takes, never early, whatever happens to clocks meanwhile.
  Millis ago = 0;
  Millis now = 0;  ///< 0: the store's clock; anything else is for tests
};

/// When an execution was over, by the store's clock, of a claim made at `claimed_at`.
constexpr Millis EndOf(const Finish& end, Millis claimed_at, Millis store_now) noexcept {
  return std::max(claimed_at, (end.now > 0 ? end.now : store_now) - end.ago);
}

enum class Finished : std::uint8_t {
  kOk = 0,
  kAlready = 1,  ///< reported before, with the same outcome
  kLost = 2,     ///< somebody else has claimed the event since, or it is not claimed at all
  kUnknown = 3,  ///< no such event
  kGivenUp = 4,  ///< the last failure that it could have: a dead letter now, although retry_at
};

/// Events that one caller claimed of one config within a minute, on the store itself. Written in
/// the transaction of the claim, so there is no claim without it.
struct ClaimNote {
  Millis minute = 0;  ///< when it began
  std::string config = {};
  std::string by = {};
  std::int64_t events = 0;

  friend bool operator==(const ClaimNote&, const ClaimNote&) = default;
};
inline constexpr Millis kNoteMillis = 60'000;
inline constexpr std::size_t kMaxNotes = 200;

/// Where listing due events goes on: behind the last one seen.
struct DueQuery {
  std::string config = {};
  Millis before = 0;
  std::size_t limit = 100;  ///< at most kMaxDuePage
  State state = State::kScheduled;
  Millis after_time = 0;
  std::string after_event = {};
};

/// What may leave. Of an event that has left, its slot, state and times are kept in the archive:
/// its id is answered as before, but its payload and history are gone. An id that has left the
/// archive is forgotten.
struct Retention {
  Millis over_before = 0;      ///< done or cancelled before: to the archive; 0: nothing
  Millis archived_before = 0;  ///< done or cancelled before: out of the archive; 0: nothing
  std::size_t limit = 1'000;   ///< of each, at most kMaxBatch
};

struct Retired {
  std::size_t archived = 0;
  std::size_t dropped = 0;
};

/// What was done to a store that was restored from a backup.
struct Restored {
  Millis newest = 0;        ///< the last change that the backup knows of; 0: none
  Millis until = 0;         ///< what was due by then may have been executed
  std::int64_t marked = 0;  ///< such events that the backup does not know to be over
};

/// How the execution of one config stands.
struct Backlog {
  std::string config = {};
  Millis now = 0;
  Millis window_start = 0;  ///< the present window
  Millis window_size = 0;
  std::int64_t cap = 0;
  std::int64_t due = 0;      ///< scheduled and due by now; kMaxCounted or above: at least so many
  Millis oldest_due = 0;     ///< 0: none
  std::int64_t later = 0;    ///< scheduled and not due yet: the rest of this window, and all later
  std::int64_t claimed = 0;  ///< granted and not finished
  std::int64_t granted = 0;  ///< in the present window
  std::int64_t failed = 0;   ///< dead letters; kMaxCounted: at least so many
  bool executed = false;     ///< somebody has claimed events of this config before
  Calendar calendar = {};    ///< of the config
};
inline constexpr std::int64_t kMaxCounted = 1'000'000;

/// When the backlog will be gone if every window from the present one on is used to its cap:
/// `windows` are those of the present window and later, in order, and `all` says whether these are
/// all of them. Nothing: not known, since not all events or windows were counted.
std::optional<Millis> CaughtUpBy(const Backlog& backlog, const std::vector<WindowLoad>& windows,
                                 bool all = true);

/// How long `late` overdue events of one claim may be spread over: at four times the pace of the
/// cap, so that a quarter of it takes a whole window, and one event among hundreds comes at once.
constexpr Millis LateSpan(Millis window_size, std::int64_t cap, std::int64_t late) noexcept {
  return std::max<Millis>(1, 4 * window_size * late / cap);
}

/// Checks the bounds of a claim; the error names the field as it is called on the wire.
Status CheckClaim(const ClaimRequest& request);

}  // namespace weir::slots
