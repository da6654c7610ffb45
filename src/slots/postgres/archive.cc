#include <utility>

#include "drivers/postgres/worker.h"
#include "slots/postgres/reading.h"
#include "slots/postgres/slot_store.h"

// Moves old finished events out of the live table.

namespace weir::slots::postgres {
namespace {

using weir::postgres::Params;
using weir::postgres::Rows;
using weir::postgres::Worker;
using ArchiveAnswer = weir::postgres::Answer;

Params SetParams(Millis before, std::size_t limit) {
  return std::move(Params().Int(before).Int(static_cast<std::int64_t>(limit)));
}

}  // namespace

void PostgresSlotStore::Retire(Retention retention, Done<Retired> done) {
  worker_->Post([this, retention, done = std::move(done)]() mutable {
    // Repeating a statement whose answer was lost moves one more set, which is harmless.
    worker_->RunLong(
        "SELECT weir_slots_archive($1, $2::int)", SetParams(retention.over_before, retention.limit),
        [this, retention, done = std::move(done)](const ArchiveAnswer& moved) {
          if (!moved.status.ok()) return done(moved.status.error());
          Retired retired{.archived = static_cast<std::size_t>(moved.rows.Int(0, 0))};
          worker_->RunLong("SELECT weir_slots_drop_archived($1, $2::int)",
                           SetParams(retention.archived_before, retention.limit),
                           [retired, done](const ArchiveAnswer& dropped) mutable {
                             if (!dropped.status.ok()) return done(dropped.status.error());
                             retired.dropped = static_cast<std::size_t>(dropped.rows.Int(0, 0));
                             done(retired);
                           });
        });
  });
}

void PostgresSlotStore::MarkRestored(Millis now, Done<Restored> done) {
  worker_->Ask(&Worker::RunLong, "SELECT * FROM weir_slots_restored($1, $2)",
               std::move(Params().Int(now).Int(kMaxAhead)), std::move(done), [](const Rows& rows) {
                 return Restored{rows.Int(0, 0), rows.Int(0, 1), rows.Int(0, 2)};
               });
}

void PostgresSlotStore::LookInArchive(std::string event_id, Done<std::optional<Event>> done) {
  Params params = std::move(Params().Text(event_id));
  worker_->Run(
      "SELECT (SELECT config_name FROM rate_limit_config c WHERE c.config_id = a.config_id LIMIT "
      "1), "
      "tenant, requested_time, window_start, scheduled_time, state, attempts, created_at, "
      "claimed_at, claimed_by, finished_at FROM rate_limit_event_archive a WHERE event_id = $1",
      std::move(params),
      [event_id = std::move(event_id), done = std::move(done)](const ArchiveAnswer& answer) {
        if (!answer.status.ok()) return done(answer.status.error());
        const Rows& rows = answer.rows;
        if (rows.size() == 0) return done(std::optional<Event>());
        Event event{.slot = ReadSlot(rows, 0, 0, event_id)};
        event.state = static_cast<State>(rows.Int(0, 5));
        event.attempts = rows.Int(0, 6);
        event.created_at = rows.Int(0, 7);
        event.claimed_at = rows.Int(0, 8);
        event.claimed_by = rows.Text(0, 9);
        event.finished_at = rows.Int(0, 10);
        event.archived = true;
        done(std::optional<Event>(std::move(event)));
      });
}

}  // namespace weir::slots::postgres
