#include <utility>

#include "drivers/postgres/worker.h"
#include "slots/postgres/slot_store.h"

// Notes of claims that were made directly on the database, for the audit log of a service.

namespace weir::slots::postgres {
namespace {

using weir::postgres::Params;
using weir::postgres::Rows;
using weir::postgres::Worker;

}  // namespace

// A claiming transaction lasts seconds at most, so nothing is added to minutes before the last one.
void PostgresSlotStore::TakeNotes(Millis now, Done<std::vector<ClaimNote>> done) {
  worker_->Ask(
      &Worker::Run,
      "WITH taken AS (UPDATE rate_limit_claim_note SET taken_until = weir_slots_now($1) + $2 "
      "WHERE (minute, config_name, claimed_by) IN (SELECT minute, config_name, claimed_by "
      "FROM rate_limit_claim_note WHERE minute <= weir_slots_now($1) - 2 * $2 "
      "AND taken_until <= weir_slots_now($1) ORDER BY 1, 2, 3 LIMIT $3 FOR UPDATE SKIP LOCKED) "
      "RETURNING minute, config_name, claimed_by, events) SELECT * FROM taken ORDER BY 1, 2, 3",
      std::move(Params().Int(now).Int(kNoteMillis).Int(static_cast<std::int64_t>(kMaxNotes))),
      std::move(done), [](const Rows& rows) {
        std::vector<ClaimNote> notes;
        notes.reserve(static_cast<std::size_t>(rows.size()));
        for (int row = 0; row < rows.size(); ++row) {
          notes.push_back({rows.Int(row, 0), std::string(rows.Text(row, 1)),
                           std::string(rows.Text(row, 2)), rows.Int(row, 3)});
        }
        return notes;
      });
}

void PostgresSlotStore::ForgetNotes(std::vector<ClaimNote> notes, Done<std::size_t> done) {
  std::vector<std::int64_t> minutes, events;
  std::vector<std::string_view> configs, callers;
  for (const ClaimNote& note : notes) {
    minutes.push_back(note.minute);
    configs.push_back(note.config);
    callers.push_back(note.by);
    events.push_back(note.events);
  }
  Params params;
  params.IntArray(minutes).TextArray(configs).TextArray(callers).IntArray(events);
  worker_->Ask(
      &Worker::Run,
      "WITH gone AS (DELETE FROM rate_limit_claim_note n "
      "USING unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) u(m, c, b, e) "
      "WHERE n.minute = u.m AND n.config_name = u.c AND n.claimed_by = u.b AND n.events = u.e "
      "RETURNING 1) SELECT count(*) FROM gone",
      std::move(params), std::move(done),
      [](const Rows& rows) { return static_cast<std::size_t>(rows.Int(0, 0)); });
}

}  // namespace weir::slots::postgres
