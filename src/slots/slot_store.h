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
/// since no index has that order; it must not delay claims.
constexpr bool MayBeMany(State state) noexcept {
  return state == State::kDone || state == State::kCancelled || state == State::kExternal;
}

/// Stores slots, window counters and configs. Both backends follow the same rules:
///
/// - An event gets the earliest window with room at or after its requested time. With concurrent
///   callers it may be a later one, by at most the windows that the other callers hold at that
///   moment.
/// - The first window counts as full for an event at floor(max × remaining / size).
/// - The same event ID always gets the same slot, also when two requests are concurrent.
/// - In every window the counter equals the number of slots and is at most the maximum, at every
///   moment and after a crash.
/// - A new version of a config keeps the counters.
///
/// Thread-safe: any thread may call any function. Callbacks run once, on a thread of the store or
/// before the call returns; they must not block. The error code kUnavailable means that the call
/// may safely be repeated: nothing was done, or event IDs make it idempotent. kDeadlineExceeded
/// means that it is unknown whether the change was made, and a repetition may make it twice:
/// Reschedule, Restore, PutConfig, Deactivate.
class SlotStore {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~SlotStore() = default;

  /// Answers pending calls with kUnavailable while the store can still be called; later calls are
  /// refused or dropped. A store in a shared database is closed together with the database.
  /// Only the owner may call it; blocks.
  virtual void Close() {}

  /// Answers in the order of `asks`, at most kMaxBatch. Within a batch, requests for earlier times
  /// are placed first. Single requests should go through a Combiner.
  virtual void AssignMany(std::vector<Ask> asks, Done<std::vector<Answer>> done) = 0;

  /// Everything known about an event, cancelled ones included.
  virtual void Look(std::string event_id, Done<std::optional<Event>> done) = 0;
  /// Frees the event's place and keeps the event as cancelled, so that repeated requests do not
  /// bring it back; idempotent. nullopt: unknown event.
  /// kFailedPrecondition: it is claimed or done. A failed event is given up: repeated requests do
  /// not bring it back, and it may be archived.
  virtual void Cancel(std::string event_id, Done<std::optional<Slot>> done) = 0;
  /// Moves an event to a new requested time, atomically: on any outcome but kNew it keeps its slot.
  /// nullopt: unknown event. kFailedPrecondition: it is cancelled, claimed or done. A failed event
  /// is retried.
  virtual void Reschedule(MoveRequest request, Done<std::optional<Answer>> done) = 0;
  /// Undoes a cancellation; otherwise like Reschedule. kFailedPrecondition: it is not cancelled.
  virtual void Restore(MoveRequest request, Done<std::optional<Answer>> done) = 0;

  /// Grants due events exclusively to this caller until their leases end: the oldest first, fair
  /// between tenants, and never more in a window than its cap (see execution.h). Events whose lease
  /// has ended are due again. kNotFound: no config of this name, active or not.
  virtual void ClaimDue(ClaimRequest request, Done<Claim> done) = 0;
  /// Ends claims. At most kMaxBatch; answered in order. Repeating a report is harmless.
  virtual void FinishMany(std::vector<Finish> ends, Done<std::vector<Finished>> done) = 0;
  /// Up to kMaxNotes notes of claims, oldest first, of minutes to which no claim adds any more.
  /// They are kept, and returned again after a minute, until forgotten. `now` 0: the store's
  /// clock.
  virtual void TakeNotes(Millis now, Done<std::vector<ClaimNote>> done) = 0;
  /// Deletes notes as returned; keeps one that has grown since. Returns how many were deleted.
  virtual void ForgetNotes(std::vector<ClaimNote> notes, Done<std::size_t> done) = 0;
  /// Events of one state by scheduled time, without payload and history.
  virtual void ListDue(DueQuery query, Done<std::vector<Event>> done) = 0;
  /// The execution backlog of each config. `now` 0: the store's clock.
  virtual void ListBacklogs(Millis now, Done<std::vector<Backlog>> done) = 0;

  /// Moves old events out of the live tables, a small set at a time; see Retention. Look and
  /// AssignMany still find those that are in the archive.
  virtual void Retire(Retention retention, Done<Retired> done) = 0;

  /// Call it after the store was restored from a backup: events that fell due since may have been
  /// executed without the backup showing it. Marks them so that their next delivery counts as a
  /// redelivery; so will events that are assigned again for a time that has passed, as their source
  /// sends them again. `now` 0: the store's clock.
  virtual void MarkRestored(Millis now, Done<Restored> done) = 0;

  /// Makes the next version of config.name the active one. Returns the config with its version.
  virtual void PutConfig(Config config, Done<Config> done) = 0;
  /// The active version; nullopt if there is none.
  virtual void GetConfig(std::string name, Done<std::optional<Config>> done) = 0;
  /// All active configs by name, or all versions of `name`, newest first.
  virtual void ListConfigs(Done<std::vector<Config>> done) = 0;
  virtual void ListVersions(std::string name, Done<std::vector<Config>> done) = 0;
  /// False: there was no active version.
  virtual void Deactivate(std::string name, Done<bool> done) = 0;

  /// Windows of the active config's size that have a row, from `from` on.
  virtual void ListWindows(std::string config, Millis from, std::size_t limit,
                           Done<std::vector<WindowLoad>> done) = 0;
  /// Compares every counter with its slots and its cap.
  virtual void Verify(Done<Findings> done) = 0;
};

}  // namespace weir::slots
