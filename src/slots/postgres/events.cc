#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "drivers/postgres/worker.h"
#include "slots/postgres/reading.h"
#include "slots/postgres/slot_store.h"
#include "slots/postgres/timings.h"

// One event: look, cancel, reschedule, restore; and lists of events.

namespace weir::slots::postgres {
namespace {

using weir::postgres::Params;
using weir::postgres::Rows;
using weir::postgres::Worker;
using EventAnswer = weir::postgres::Answer;

constexpr int kMaxTries = 5;  // gives up on a config that changes faster than that

constexpr std::string_view kEventColumns =
    "SELECT s.event_id, (SELECT config_name FROM rate_limit_config c WHERE c.config_id = "
    "s.config_id "
    "LIMIT 1), tenant, requested_time, window_start, scheduled_time, state, attempts, created_at, "
    "claimed_at, lease_until, finished_at, claimed_by, error, ";

std::string EventQuery(std::string_view rest) { return std::string(kEventColumns).append(rest); }

Event ReadEvent(const Rows& rows, int row) {
  return {.slot = ReadSlot(rows, row, 1, std::string(rows.Text(row, 0))),
          .state = static_cast<State>(rows.Int(row, 6)),
          .attempts = rows.Int(row, 7),
          .created_at = rows.Int(row, 8),
          .claimed_at = rows.Int(row, 9),
          .lease_until = rows.Int(row, 10),
          .finished_at = rows.Int(row, 11),
          .claimed_by = std::string(rows.Text(row, 12)),
          .error = std::string(rows.Text(row, 13))};
}

// SQLSTATE WS01n: the event's state n does not allow the operation.
Error NotAllowed(const EventAnswer& answer) {
  if (!answer.sqlstate.starts_with("WS01")) return answer.status.error();
  const auto state = static_cast<State>(answer.sqlstate.back() - '0');
  return {Code::kFailedPrecondition, StateName(state)};
}

}  // namespace

void PostgresSlotStore::Look(std::string event_id, Done<std::optional<Event>> done) {
  worker_->Post([this, event_id = std::move(event_id), done = std::move(done)]() mutable {
    Params params = std::move(Params().Text(event_id));
    // A row for each of the latest few changes, or one row without a change.
    worker_->Run(EventQuery("payload, h.at, h.what, h.detail FROM rate_limit_event_slot s "
                            "LEFT JOIN LATERAL (SELECT * FROM rate_limit_event_change x "
                            "WHERE x.event_id = s.event_id ORDER BY at DESC LIMIT 100) h ON true "
                            "WHERE s.event_id = $1 ORDER BY h.at"),
                 std::move(params), [this, event_id, done](const EventAnswer& answer) {
                   if (!answer.status.ok()) return done(answer.status.error());
                   const Rows& rows = answer.rows;
                   if (rows.size() == 0) return LookInArchive(event_id, done);
                   Event event = ReadEvent(rows, 0);
                   event.payload = rows.Text(0, 14);
                   for (int row = 0; row < rows.size() && !rows.IsNull(row, 15); ++row) {
                     event.history.push_back({rows.Int(row, 15), std::string(rows.Text(row, 16)),
                                              std::string(rows.Text(row, 17))});
                   }
                   done(std::optional<Event>(std::move(event)));
                 });
  });
}

template <typename T>
void PostgresSlotStore::AnswerGone(const std::string& event_id, Done<std::optional<T>> done) {
  LookInArchive(event_id, [done = std::move(done)](Result<std::optional<Event>> event) {
    if (!event.ok()) return done(event.error());
    if (!event->has_value()) return done(std::optional<T>());
    if constexpr (std::is_same_v<T, Slot>) {  // it was cancelled before: same answer
      if ((*event)->state == State::kCancelled) return done(std::optional<T>((*event)->slot));
    }
    done(Error{Code::kFailedPrecondition,
               StateName((*event)->state) + std::string(" and archived")});
  });
}

void PostgresSlotStore::Cancel(std::string event_id, Done<std::optional<Slot>> done) {
  worker_->Post([this, event_id = std::move(event_id), done = std::move(done)]() mutable {
    Params params = std::move(Params().Text(event_id));
    worker_->Run("SELECT * FROM weir_slots_cancel($1)", std::move(params),
                 [this, event_id, done](const EventAnswer& answer) {
                   if (!answer.status.ok()) return done(NotAllowed(answer));
                   if (answer.rows.size() == 0) return AnswerGone<Slot>(event_id, done);
                   done(std::optional<Slot>(ReadSlot(answer.rows, 0, 0, event_id)));
                 });
  });
}

struct PostgresSlotStore::Moving {
  MoveRequest request;
  bool from_cancelled = false;
  Done<std::optional<Answer>> done;
  bool accepted = false;  // the event has been accepted for this time before
  Config timed = {};      // version 0: without a calendar
  int tries = 0;
};

void PostgresSlotStore::Reschedule(MoveRequest request, Done<std::optional<Answer>> done) {
  Move(std::make_shared<Moving>(Moving{std::move(request), false, std::move(done)}));
}

void PostgresSlotStore::Restore(MoveRequest request, Done<std::optional<Answer>> done) {
  Move(std::make_shared<Moving>(Moving{std::move(request), true, std::move(done)}));
}

// Reads the config's calendar and, if needed, the time that the event had requested; then moves it.
void PostgresSlotStore::TimeAndMove(const std::shared_ptr<Moving>& moving) {
  Look(moving->request.event_id, [this, moving](Result<std::optional<Event>> event) {
    if (!event.ok()) return moving->done(event.error());
    if (!event->has_value()) return moving->done(std::optional<Answer>());
    MoveRequest& request = moving->request;
    if (request.config.empty()) request.config = (*event)->slot.config;
    if (!request.requested) {
      request.requested = (*event)->slot.requested;
      moving->accepted = true;
    }
    const std::string& name = request.config;
    LearnTimings({name}, [this, moving, name](const Status& learned) {
      if (!learned.ok()) return moving->done(learned.error());
      const Config* const timed = Timed(name);
      moving->timed = timed == nullptr ? Config{} : *timed;
      Move(moving);
    });
  });
}

void PostgresSlotStore::Move(std::shared_ptr<Moving> moving) {
  worker_->Post([this, moving = std::move(moving)] {
    const MoveRequest& request = moving->request;
    std::optional<Timing> timing;
    Millis earliest = request.requested.value_or(0);
    if (moving->timed.version > 0) {  // TimeAndMove has filled in the time
      timing.emplace(moving->timed, MachineMillis());
      const auto open =
          moving->accepted ? std::optional(timing->Again(earliest)) : timing->Earliest(earliest);
      if (!open) return moving->done(std::optional<Answer>(Answer{.outcome = Outcome::kPast}));
      earliest = *open;
    }
    Params params;
    params.Text(request.event_id);
    const auto maybe = [&params](bool given, auto add) {
      if (given) return void(add());
      params.Null();
    };
    maybe(!request.config.empty(), [&] { params.Text(request.config); });
    maybe(request.requested.has_value(), [&] { params.Int(*request.requested); });
    maybe(timing.has_value(), [&] { params.Int(earliest); });
    params.Int(request.random);
    AppendTiming(params, timing ? &moving->timed : nullptr, timing, {&earliest, 1});
    worker_->RunChange(
        moving->from_cancelled
            ? "SELECT * FROM weir_slot_move($1, $2::text, $3::bigint, $4::bigint, $5, $6::int, "
              "ARRAY[4], NULL, 'restored', NULL, $7::bigint[], $8::bigint[])"
            : "SELECT * FROM weir_slot_move($1, $2::text, $3::bigint, $4::bigint, $5, $6::int, "
              "ARRAY[0, 3, 5], NULL, 'rescheduled', NULL, $7::bigint[], $8::bigint[])",
        std::move(params), [this, moving](const EventAnswer& answer) {
          if (answer.sqlstate == "WS009" && ++moving->tries < kMaxTries) {
            return TimeAndMove(moving);
          }
          if (answer.sqlstate == "WS002" || answer.sqlstate == "WS003") {
            const auto outcome = static_cast<Outcome>(answer.sqlstate.back() - '0');
            return moving->done(std::optional<Answer>(Answer{.outcome = outcome}));
          }
          if (!answer.status.ok()) return moving->done(NotAllowed(answer));
          if (answer.rows.size() == 0) {
            return AnswerGone<Answer>(moving->request.event_id, moving->done);
          }
          moving->done(std::optional<Answer>(
              Answer{Outcome::kNew, ReadSlot(answer.rows, 0, 0, moving->request.event_id)}));
        });
  });
}

void PostgresSlotStore::ListDue(DueQuery query, Done<std::vector<Event>> done) {
  Params params;
  params.Text(query.config).Int(query.before).Int(static_cast<std::int64_t>(query.limit));
  params.Int(static_cast<std::int64_t>(query.state)).Int(query.after_time);
  params.Text(query.after_event);
  // Enumerates the tenant classes, so that each is a range of the index of due events.
  const char* const due =
      "NULL FROM (SELECT DISTINCT config_id FROM rate_limit_config WHERE config_name = $1) g "
      "CROSS JOIN LATERAL (SELECT '' UNION SELECT unnest(tenants) FROM rate_limit_config t "
      "WHERE t.config_name = $1) k(class) CROSS JOIN LATERAL ("
      "SELECT * FROM rate_limit_event_slot e WHERE e.config_id = g.config_id "
      "AND e.tenant_class = k.class AND e.state = 0 AND $4 = 0 AND e.scheduled_time <= $2 "
      "AND e.scheduled_time >= $5 AND (e.scheduled_time, e.event_id) > ($5, $6) "
      "ORDER BY e.scheduled_time, e.event_id LIMIT $3) s "
      "ORDER BY scheduled_time, event_id LIMIT $3";
  const char* const other =
      "NULL FROM rate_limit_event_slot s WHERE s.config_id = (SELECT config_id "
      "FROM rate_limit_config WHERE config_name = $1 LIMIT 1) AND s.state = $4 "
      "AND s.scheduled_time <= $2 AND (s.scheduled_time, s.event_id) > ($5, $6) "
      "ORDER BY scheduled_time, event_id LIMIT $3";
  worker_->Ask(MayBeMany(query.state) ? &Worker::RunLong : &Worker::Run,
               EventQuery(query.state == State::kScheduled ? due : other), std::move(params),
               std::move(done), [](const Rows& rows) {
                 std::vector<Event> events;
                 for (int row = 0; row < rows.size(); ++row) events.push_back(ReadEvent(rows, row));
                 return events;
               });
}

}  // namespace weir::slots::postgres
