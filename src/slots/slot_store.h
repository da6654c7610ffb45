#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "slots/execution.h"
#include "slots/slot.h"
#include "weir/result.h"

namespace weir::slots {

/// Whether millions of events may be in this state. Listing them by scheduled time reads them all,
/// since no index has that order; it must not keep claims waiting.
constexpr bool MayBeMany(State state) noexcept {
  return state == State::kDone || state == State::kCancelled || state == State::kExternal;
}

/// Where slots, window counters and configs live. Both backends keep the same rules:
///
/// - An event gets the earliest window with room at or after its requested time; among several
/// callers
///   at once never a later one by more than the windows that the others hold just then.
/// - The first window counts as full for an event at floor(max × remaining / size).
/// - The same event id gets the same slot for ever, also when two ask at once.
/// - In every window the counter equals the number of slots and is at most the maximum; so it is at
///   every moment, and after a crash.
/// - A new version of a config keeps the counters.
///
/// Thread-safe: any thread may call anything. Callbacks run on a thread of the store, once, maybe
/// before the call returns; they must not block. An error of code kUnavailable means that asking
/// again is safe: nothing was done, or event ids make it idempotent. kDeadlineExceeded means that
/// it is unknown whether a change was made which cannot be told from others if it is made again:
/// Reschedule, Restore, PutConfig, Deactivate.
class SlotStore {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~SlotStore() = default;

  /// Answers what is under way with kUnavailable, while the store can still be asked; from then on
  /// whatever is asked for is refused or forgotten. A store in a database that others use as well
  /// is closed with that. For the owner; blocks.
  virtual void Close() {}

  /// Answers in the order of `asks`, at most kMaxBatch. Within a batch, a request for an earlier
  /// time chooses first. Single requests should go through a Combiner.
  virtual void AssignMany(std::vector<Ask> asks, Done<std::vector<Answer>> done) = 0;

  /// All that is known of an event, cancelled ones included.
  virtual void Look(std::string event_id, Done<std::optional<Event>> done) = 0;
  /// Frees the event's place and keeps the event as cancelled, so that its feed cannot bring it
  /// back; cancelling twice is cancelling once. Nothing: there is no such event.
  /// kFailedPrecondition: it is claimed or done. A failed one is given up: its feed does not bring
  /// it back, and it may be archived.
  virtual void Cancel(std::string event_id, Done<std::optional<Slot>> done) = 0;
  /// Moves an event to a new requested time, atomically: on any outcome but kNew it keeps its slot.
  /// Nothing: there is no such event. kFailedPrecondition: it is cancelled, claimed or done. A
  /// failed one is tried again.
  virtual void Reschedule(MoveRequest request, Done<std::optional<Answer>> done) = 0;
  /// Takes a cancellation back. Otherwise as Reschedule. kFailedPrecondition: it is not cancelled.
  virtual void Restore(MoveRequest request, Done<std::optional<Answer>> done) = 0;

  /// Gives due events to this caller alone until their leases end: the oldest first, fair between
  /// tenants, and never more in a window than its cap (see execution.h). Events whose lease has
  /// ended are due again. kNotFound: there is no such config, active or not.
  virtual void ClaimDue(ClaimRequest request, Done<Claim> done) = 0;
  /// Ends claims. At most kMaxBatch; answered in their order. Telling the same again is harmless.
  virtual void FinishMany(std::vector<Finish> ends, Done<std::vector<Finished>> done) = 0;
  /// Up to kMaxNotes notes of claims, oldest first, of minutes that nobody adds to any more. They
  /// are kept, and given again after a minute, until they are forgotten. `now` 0: the store's
  /// clock.
  virtual void TakeNotes(Millis now, Done<std::vector<ClaimNote>> done) = 0;
  /// As they were given; one that has grown since is kept. Tells how many were forgotten.
  virtual void ForgetNotes(std::vector<ClaimNote> notes, Done<std::size_t> done) = 0;
  /// Events of one state by scheduled time, without payload and history.
  virtual void ListDue(DueQuery query, Done<std::vector<Event>> done) = 0;
  /// How the execution of each config stands. `now` 0: the store's clock.
  virtual void ListBacklogs(Millis now, Done<std::vector<Backlog>> done) = 0;

  /// Moves old events out of the live tables, a small set at a time; see Retention. Look and
  /// AssignMany know those that are in the archive.
  virtual void Retire(Retention retention, Done<Retired> done) = 0;

  /// After the store was restored from a backup: what was due since may have been executed, and the
  /// backup does not know it. Marks such events, so that their next delivery is a redelivery; and
  /// so will be those that are assigned again for a time that has passed, since their feed comes
  /// again. `now` 0: the store's clock.
  virtual void MarkRestored(Millis now, Done<Restored> done) = 0;

  /// Makes the next version of config.name the active one. Answers it with its version.
  virtual void PutConfig(Config config, Done<Config> done) = 0;
  /// The active version. Nothing: there is none.
  virtual void GetConfig(std::string name, Done<std::optional<Config>> done) = 0;
  /// All active configs by name, or all versions of `name`, newest first.
  virtual void ListConfigs(Done<std::vector<Config>> done) = 0;
  virtual void ListVersions(std::string name, Done<std::vector<Config>> done) = 0;
  /// False: there was no active version.
  virtual void Deactivate(std::string name, Done<bool> done) = 0;

  /// Windows of the active size that have a row, from `from` on.
  virtual void ListWindows(std::string config, Millis from, std::size_t limit,
                           Done<std::vector<WindowLoad>> done) = 0;
  /// Compares every counter with its slots and its cap.
  virtual void Verify(Done<Findings> done) = 0;
};

}  // namespace weir::slots
