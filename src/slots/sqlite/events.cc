#include "slots/sqlite/events.h"

#include <algorithm>
#include <string>
#include <utility>

#include "slots/config.h"
#include "slots/sqlite/archive.h"
#include "slots/sqlite/configs.h"
#include "slots/sqlite/counts.h"
#include "slots/sqlite/sql.h"
#include "slots/sqlite/transaction.h"
#include "slots/timing.h"
#include "slots/window.h"

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

Event ReadEvent(const Statement& query) {
  return {.slot = {.event_id = std::string(query.Text(0)),
                   .config = std::string(query.Text(1)),
                   .tenant = std::string(query.Text(2)),
                   .requested = query.Int(3),
                   .window_start = query.Int(4),
                   .scheduled = query.Int(5)},
          .state = static_cast<State>(query.Int(6)),
          .attempts = query.Int(7),
          .created_at = query.Int(8),
          .claimed_at = query.Int(9),
          .lease_until = query.Int(10),
          .finished_at = query.Int(11),
          .claimed_by = std::string(query.Text(12)),
          .error = std::string(query.Text(13))};
}

Error NotAllowed(State state) { return {Code::kFailedPrecondition, StateName(state)}; }
Error LeftAs(State state) {
  return {Code::kFailedPrecondition, StateName(state) + std::string(" and archived")};
}

// The answer to moving an event that is only in the archive, or does not exist.
Result<std::optional<Answer>> MoveArchived(Connection& connection, std::string_view event_id) {
  Result<std::optional<Event>> left = LookInArchive(connection, event_id);
  if (!left.ok()) return left.error();
  if (!left->has_value()) return std::optional<Answer>();
  return LeftAs((*left)->state);
}

Result<std::optional<Slot>> CancelArchived(Connection& connection, std::string_view event_id) {
  Result<std::optional<Event>> left = LookInArchive(connection, event_id);
  if (!left.ok()) return left.error();
  if (!left->has_value()) return std::optional<Slot>();
  if ((*left)->state != State::kCancelled) return LeftAs((*left)->state);
  return std::optional<Slot>(std::move((*left)->slot));
}

Status ReadHistory(Connection& connection, Event& event) {
  auto changes = connection.ReadAll(
      kReadHistory,
      [](const Statement& row) {
        return Change{row.Int(0), std::string(row.Text(1)), std::string(row.Text(2))};
      },
      event.slot.event_id);
  if (!changes.ok()) return changes.error();
  std::reverse(changes->begin(), changes->end());
  event.history = std::move(*changes);
  return {};
}

// The claimer is gone. The next claim of the config would notice that, but there may be none.
bool Lapsed(const StoredSlot& event, Millis now) {
  return event.state == State::kClaimed && event.lease_until <= now;
}

Status EndLease(Connection& connection, StoredSlot& event) {
  Status s = connection.Run(kEndOneLease, event.slot.event_id);
  if (s.ok()) {
    s = CountEnd(connection, event.config_id, {event.exec_size, event.exec_window},
                 event.lease_until);
  }
  if (!s.ok()) return s;
  event.state = State::kScheduled;
  event.exec_size = 0;
  return NoteChange(connection, event.slot.event_id, event.lease_until, "lease-ended",
                    event.claimed_by);
}

struct NewPlace {
  const StoredConfig& stored;
  Millis window;
  Millis scheduled;
  Millis requested;
};

Status Settle(Connection& connection, const StoredSlot& old, const NewPlace& place) {
  const Config& config = place.stored.config;
  return connection.Run(kSettleEvent, old.slot.event_id, place.stored.id, config.window_size,
                        place.window, place.scheduled, place.requested,
                        ClassOf(config, old.slot.tenant));
}

/// Where an event is to go.
struct Wanted {
  const std::string& config;
  Millis requested;  ///< what the event keeps as its requested time
  Millis earliest;   ///< before the config's calendar is applied
  bool accepted;     ///< it was accepted for that time before: not refused if the time has passed
  std::int64_t random;
  bool retry = false;  ///< after a failure: the config need not be active
};

// On any outcome but kNew, changes may remain: the caller must roll back.
Result<Answer> Replace(Connection& connection, const StoredSlot& old, const Wanted& wanted) {
  Result<std::optional<StoredConfig>> stored =
      wanted.retry ? LoadLatest(connection, wanted.config) : LoadActive(connection, wanted.config);
  if (!stored.ok()) return stored.error();
  if (!stored->has_value()) return Answer{.outcome = Outcome::kUnknownConfig};
  Timing timing((*stored)->config, MachineMillis());
  const std::optional<Millis> earliest =
      wanted.accepted ? timing.Again(wanted.earliest) : timing.Earliest(wanted.earliest);
  if (!earliest) return Answer{.outcome = Outcome::kPast};
  const std::vector<OpenTime> open = timing.Open({&*earliest, 1});
  if (old.state != State::kCancelled) {
    if (Status s = FreePlace(connection, old); !s.ok()) return s.error();
  }
  Result<std::optional<Millis>> window =
      TakePlace(connection, **stored, old.slot.tenant, *earliest, open);
  if (!window.ok()) return window.error();
  if (!window->has_value()) return Answer{.outcome = Outcome::kExhausted};
  const Millis size = (*stored)->config.window_size;
  const Millis scheduled =
      ScheduledIn(**window, size, OpenFrom(open, **window, size, *earliest), wanted.random);
  Status s = Settle(connection, old, {**stored, **window, scheduled, wanted.requested});
  if (!s.ok()) return s.error();
  return Answer{Outcome::kNew, Slot{old.slot.event_id, wanted.config, old.slot.tenant,
                                    wanted.requested, **window, scheduled}};
}

// Makes a claimed event due again where it was, in its tenant's present class: in a class that no
// longer exists, no claim would find it.
Status Return(Connection& connection, const StoredSlot& event) {
  Result<std::optional<StoredConfig>> stored = LoadLatest(connection, event.slot.config);
  if (!stored.ok()) return stored.error();
  const Config config = stored->has_value() ? (*stored)->config : Config{};
  return connection.Run(kReturnEvent, event.slot.event_id, ClassOf(config, event.slot.tenant));
}

}  // namespace

Status NoteChange(Connection& connection, std::string_view event_id, Millis at,
                  std::string_view what, std::string_view detail) {
  return connection.Run(kNoteChange, event_id, at, what, detail);
}

Result<std::optional<Event>> LookAt(Connection& connection, std::string_view event_id) {
  auto event = connection.ReadFirst(
      std::string(kSelectEvent) + " WHERE event_id = ?1",
      [](const Statement& row) {
        Event found = ReadEvent(row);
        found.payload = row.Text(14);
        return found;
      },
      event_id);
  if (!event.ok()) return event.error();
  if (!event->has_value()) return LookInArchive(connection, event_id);
  if (Status s = ReadHistory(connection, **event); !s.ok()) return s.error();
  return event;
}

Result<std::vector<Event>> ListEvents(Connection& connection, const DueQuery& query) {
  // Stated twice: SQLite does not see by itself that the index of ended events applies.
  const bool ended = query.state == State::kDone || query.state == State::kFailed ||
                     query.state == State::kCancelled;
  const std::string in_state = "WHERE state = " + std::to_string(static_cast<int>(query.state)) +
                               (ended ? " AND state IN (2, 3, 4) " : " ") + kAndOfConfig;
  return connection.ReadAll(
      std::string(kSelectEvent) + ' ' + (query.state == State::kScheduled ? kWhereDue : in_state),
      ReadEvent, query.config, query.before, query.after_time, query.after_event, query.limit);
}

Result<std::optional<Slot>> CancelEvent(Connection& connection, std::string_view event_id) {
  Result<std::optional<StoredSlot>> found = LoadSlot(connection, event_id);
  if (!found.ok()) return found.error();
  if (!found->has_value()) return CancelArchived(connection, event_id);
  StoredSlot& gone = **found;
  const Millis now = MachineMillis();
  if (gone.state == State::kCancelled) return std::optional<Slot>(gone.slot);
  if (Lapsed(gone, now)) {
    if (Status s = EndLease(connection, gone); !s.ok()) return s.error();
  }
  if (gone.state == State::kClaimed || gone.state == State::kDone) return NotAllowed(gone.state);
  if (Status s = connection.Run(kCancelEvent, event_id, now); !s.ok()) return s.error();
  if (Status s = FreePlace(connection, gone); !s.ok()) return s.error();
  Status s =
      NoteChange(connection, event_id, now, "cancelled", std::to_string(gone.slot.scheduled));
  if (!s.ok()) return s.error();
  return std::optional<Slot>(gone.slot);
}

Result<std::optional<Answer>> MoveEvent(Connection& connection, const Moving& moving,
                                        Stayed& stayed) {
  const MoveRequest& request = moving.request;
  Result<std::optional<StoredSlot>> found = LoadSlot(connection, request.event_id);
  if (!found.ok()) return found.error();
  if (!found->has_value()) return MoveArchived(connection, request.event_id);
  StoredSlot& old = **found;
  if (!moving.restoring && Lapsed(old, MachineMillis())) {
    if (Status s = EndLease(connection, old); !s.ok()) return s.error();
  }
  const bool allowed = moving.restoring
                           ? old.state == State::kCancelled
                           : old.state == State::kScheduled || old.state == State::kFailed ||
                                 old.state == State::kExternal;
  if (!allowed) return NotAllowed(old.state);
  const Millis requested = request.requested.value_or(old.slot.requested);
  Result<Answer> answer = Replace(connection, old,
                                  {request.config.empty() ? old.slot.config : request.config,
                                   requested, requested, !request.requested, request.random});
  if (!answer.ok()) return answer.error();
  if (answer->outcome != Outcome::kNew) {
    stayed.outcome = answer->outcome;
    return Error{Code::kFailedPrecondition, "the event keeps its slot"};
  }
  // After a move, the event gets the full number of tries again.
  Status s = connection.Run(kForgetFailures, request.event_id);
  if (!s.ok()) return s.error();
  s = NoteChange(connection, request.event_id, MachineMillis(),
                 moving.restoring ? "restored" : "rescheduled", std::to_string(old.slot.scheduled));
  if (!s.ok()) return s.error();
  return std::optional<Answer>(std::move(*answer));
}

Result<Finished> RetryEvent(Connection& connection, const Finish& end, Millis now) {
  Result<std::optional<StoredSlot>> found = LoadSlot(connection, end.event_id);
  if (!found.ok()) return found.error();
  if (!found->has_value()) return Finished::kUnknown;
  const StoredSlot& old = **found;
  const bool open = old.state == State::kScheduled || old.state == State::kClaimed;
  if (old.attempts != end.attempt || end.attempt < 1) return Finished::kLost;
  if (old.state == State::kFailed) return Finished::kAlready;  // given up by the same call before
  if (!open) return Finished::kLost;
  if (old.state == State::kScheduled && old.claimed_at == 0) return Finished::kAlready;
  if (Status s = connection.Execute("SAVEPOINT retry"); !s.ok()) return s.error();
  Result<Answer> moved =
      Replace(connection, old,
              {old.slot.config, old.slot.requested, *end.retry_at, true, end.random, true});
  if (!moved.ok()) return moved.error();
  if (moved->outcome != Outcome::kNew) {  // due immediately, where it was
    if (Status s = connection.Execute("ROLLBACK TO retry"); !s.ok()) return s.error();
    if (Status s = Return(connection, old); !s.ok()) return s.error();
  }
  if (Status s = connection.Execute("RELEASE retry"); !s.ok()) return s.error();
  const std::int64_t counts = end.counts ? 1 : 0;
  if (Status s = connection.Run(kNoteFailure, end.event_id, end.error, counts); !s.ok()) {
    return s.error();
  }
  Status s = NoteChange(connection, end.event_id, now, "failed", end.error);
  if (!s.ok()) return s.error();
  if (old.exec_size > 0) {
    s = CountEnd(connection, old.config_id, {old.exec_size, old.exec_window},
                 EndOf(end, old.claimed_at, now));
    if (!s.ok()) return s.error();
  }
  return Finished::kOk;
}

}  // namespace weir::slots::sqlite
