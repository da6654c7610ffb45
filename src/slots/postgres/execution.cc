#include <memory>
#include <optional>
#include <utility>

#include "drivers/postgres/worker.h"
#include "slots/postgres/reading.h"
#include "slots/postgres/slot_store.h"
#include "slots/postgres/timings.h"

// Claims and their ends.

namespace weir::slots::postgres {
namespace {

using weir::postgres::Params;
using weir::postgres::Rows;
using weir::postgres::Worker;
using ExecutionAnswer = weir::postgres::Answer;

constexpr std::int64_t kRandomMask = 0x3fffffff;  // SQL adds hashes to it

constexpr const char* kClaim =
    "SELECT * FROM weir_slots_claim_open($1, $2::int, $3, $4, $5, $6, $7, $8::int, "
    "$9::bigint[], $10::bigint[])";
// Also writes a note of it, in the same transaction. The last row describes the call itself.
constexpr const char* kClaimAndNote =
    "WITH claimed AS MATERIALIZED (SELECT * FROM weir_slots_claim_open($1, $2::int, $3, $4, $5, "
    "$6, $7, $8::int, $9::bigint[], $10::bigint[])), noted AS (INSERT INTO rate_limit_claim_note "
    "AS n SELECT max(r_now) - max(r_now) % 60000, $1, $5, count(*) - 1 FROM claimed "
    "HAVING count(*) > 1 ON CONFLICT (minute, config_name, claimed_by) "
    "DO UPDATE SET events = n.events + excluded.events) SELECT * FROM claimed";
static_assert(kNoteMillis == 60'000);

// As the SQL expects it: a time by the store's clock, or, if not above 0, minus the age.
Millis OverOf(const Finish& end) { return end.now - end.ago; }

// The last row describes the call itself.
Claim ReadClaim(const Rows& rows, const std::string& config) {
  const int last = rows.size() - 1;
  Claim claim{.now = rows.Int(last, 9), .events = {}, .capped = rows.Int(last, 10) != 0};
  claim.events.reserve(static_cast<std::size_t>(last));
  for (int row = 0; row < last; ++row) {
    claim.events.push_back({.slot = {.event_id = std::string(rows.Text(row, 0)),
                                     .config = config,
                                     .tenant = std::string(rows.Text(row, 1)),
                                     .requested = rows.Int(row, 2),
                                     .window_start = rows.Int(row, 3),
                                     .scheduled = rows.Int(row, 4)},
                            .attempt = rows.Int(row, 5),
                            .execute_at = rows.Int(row, 6),
                            .lease_until = rows.Int(row, 7),
                            .payload = std::string(rows.Text(row, 8))});
  }
  return claim;
}

// The end of the open time that contains `now`.
Millis ClosingAfter(const Calendar& calendar, Millis now) {
  if (!calendar.any()) return kMaxInstant;
  const std::optional<OpenTime> open = OpenTimes(calendar).At(now);
  return open && open->from <= now ? open->until : kMaxInstant;
}

template <typename Work>
Params PlainParams(const Work& ending) {
  std::vector<std::string_view> events;
  std::vector<std::int64_t> attempts;
  std::vector<std::int64_t> failed;
  std::vector<std::string_view> errors;
  std::vector<std::int64_t> over;
  for (const std::size_t index : ending.plain) {
    const Finish& end = ending.ends[index];
    events.push_back(end.event_id);
    attempts.push_back(end.attempt);
    failed.push_back(end.failed ? 1 : 0);
    errors.push_back(end.error);
    over.push_back(OverOf(end));
  }
  Params params;
  params.TextArray(events).IntArray(attempts).IntArray(failed).TextArray(errors).IntArray(over);
  return params;
}

}  // namespace

// The state of one FinishMany until all of it is answered. On the worker's thread.
struct PostgresSlotStore::Ending {
  std::vector<Finish> ends;
  std::vector<Finished> answers;
  std::vector<std::size_t> plain;  // those that are sent in one statement
  std::size_t open = 0;
  Status failure;
  SlotStore::Done<std::vector<Finished>> done;

  void Close() {
    if (--open > 0) return;
    if (!failure.ok()) return done(failure.error());
    done(std::move(answers));
  }
};

void PostgresSlotStore::ClaimDue(ClaimRequest request, Done<Claim> done) {
  worker_->Post([this, request = std::move(request), done = std::move(done)]() mutable {
    Params params;
    params.Text(request.config).Int(static_cast<std::int64_t>(request.max)).Int(request.lease);
    params.Int(request.ahead).Text(request.by).Int(request.now);
    params.Int(request.random & kRandomMask);
    const Config* const timed = Timed(request.config);
    AppendOpenNow(params, timed, request.now > 0 ? request.now : MachineMillis());
    const Calendar calendar = timed == nullptr ? Calendar{} : timed->calendar;
    // Claiming is not idempotent: events claimed by a call whose answer was lost are due again when
    // their lease ends.
    worker_->RunOnce(
        request.noted ? kClaimAndNote : kClaim, std::move(params),
        [this, request, calendar, done = std::move(done)](const ExecutionAnswer& answer) {
          const std::string& config = request.config;
          if (answer.sqlstate == "WS009") {
            return LearnTimings({config}, [this, request, done](const Status& learned) {
              if (!learned.ok()) return done(learned.error());
              ClaimDue(request, done);
            });
          }
          if (answer.sqlstate == "WS003") {
            return done(Error{Code::kNotFound, "there is no config '" + config + "'"});
          }
          if (!answer.status.ok()) return done(answer.status.error());
          Claim claim = ReadClaim(answer.rows, config);
          claim.not_after = ClosingAfter(calendar, claim.now);
          done(std::move(claim));
        });
  });
}

// Each in its own transaction: it locks windows before the event, as moving does.
void PostgresSlotStore::Retry(const std::shared_ptr<Ending>& work, std::size_t index,
                              const Config* timed) {
  const Finish& end = work->ends[index];
  std::optional<Timing> timing;
  if (timed != nullptr) timing.emplace(*timed, MachineMillis());
  const Millis earliest = timing ? timing->Again(*end.retry_at) : *end.retry_at;
  Params params;
  params.Text(end.event_id).Int(end.attempt).Text(end.error).Int(earliest);
  params.Int(end.random).Int(OverOf(end));
  AppendTiming(params, timed, timing, {&earliest, 1});
  params.Int(end.counts ? 1 : 0).Int(end.most_failures);
  worker_->Run(
      "SELECT weir_slots_retry($1, $2::int, $3, $4, $5, $7::int, $6, 0, $8::bigint[], "
      "$9::bigint[], $10::int, $11)",
      std::move(params), [this, work, index](const ExecutionAnswer& answer) {
        if (answer.sqlstate == "WS009") return TimeAndRetry(work, index);
        if (answer.status.ok()) {
          work->answers[index] = static_cast<Finished>(answer.rows.Int(0, 0));
        } else {
          work->failure = answer.status;
        }
        work->Close();
      });
}

// The event's config has a calendar.
void PostgresSlotStore::TimeAndRetry(const std::shared_ptr<Ending>& work, std::size_t index) {
  const auto failed = [work](const Status& why) {
    work->failure = why;
    work->Close();
  };
  Look(work->ends[index].event_id, [this, work, index, failed](Result<std::optional<Event>> event) {
    if (!event.ok()) return failed(event.error());
    const std::string name = event->has_value() ? (*event)->slot.config : std::string();
    LearnTimings({name}, [this, work, index, failed, name](const Status& learned) {
      if (!learned.ok()) return failed(learned);
      Retry(work, index, Timed(name));
    });
  });
}

void PostgresSlotStore::FinishMany(std::vector<Finish> ends, Done<std::vector<Finished>> done) {
  auto work = std::make_shared<Ending>();
  work->answers.resize(ends.size());
  work->ends = std::move(ends);
  work->done = std::move(done);
  worker_->Post([this, work] {
    work->open = 1;
    for (std::size_t i = 0; i < work->ends.size(); ++i) {
      const Finish& end = work->ends[i];
      if (!end.failed || !end.retry_at) {
        work->plain.push_back(i);
        continue;
      }
      ++work->open;
      Retry(work, i, nullptr);
    }
    if (work->plain.empty()) return work->Close();
    worker_->Run("SELECT * FROM weir_slots_finish($1, $2::int[], $3, $4, $5, 0)",
                 PlainParams(*work), [work](const ExecutionAnswer& answer) {
                   if (!answer.status.ok()) work->failure = answer.status;
                   for (int row = 0; row < answer.rows.size(); ++row) {
                     const auto at = static_cast<std::size_t>(answer.rows.Int(row, 0) - 1);
                     work->answers[work->plain[at]] =
                         static_cast<Finished>(answer.rows.Int(row, 1));
                   }
                   work->Close();
                 });
  });
}

void PostgresSlotStore::ListBacklogs(Millis now, Done<std::vector<Backlog>> done) {
  worker_->Ask(&Worker::RunLong,
               "SELECT b.*, c.calendar, l.n + s.n FROM weir_slots_backlogs($1) b "
               "CROSS JOIN LATERAL (SELECT config_id, calendar, CASE WHEN cardinality(tenants) = 0 "
               "THEN ARRAY[''] ELSE tenants END AS classes FROM rate_limit_config "
               "WHERE config_name = b.r_config ORDER BY version DESC LIMIT 1) c "
               "CROSS JOIN LATERAL (SELECT count(*) AS n FROM unnest(c.classes) k(class) "
               "CROSS JOIN LATERAL (SELECT FROM rate_limit_event_slot e "
               "WHERE e.config_id = c.config_id AND e.tenant_class = k.class AND e.state = 0 "
               "AND e.scheduled_time > b.r_now AND e.scheduled_time < b.r_window + b.r_size "
               "LIMIT 1000000) d) s CROSS JOIN LATERAL "
               "(SELECT coalesce(sum(w.slot_count), 0)::bigint AS n FROM (SELECT DISTINCT "
               "window_ms FROM rate_limit_config g WHERE g.config_name = b.r_config) z "
               "JOIN rate_limit_window_counter w ON w.config_id = c.config_id "
               "AND w.window_ms = z.window_ms AND w.window_start > b.r_window) l",
               std::move(Params().Int(now)), std::move(done),
               [](const Rows& rows) -> Result<std::vector<Backlog>> {
                 std::vector<Backlog> backlogs;
                 for (int row = 0; row < rows.size(); ++row) {
                   Result<Calendar> calendar = ParseCalendar(rows.Text(row, 11));
                   if (!calendar.ok()) return calendar.error();
                   backlogs.push_back({.config = std::string(rows.Text(row, 0)),
                                       .now = rows.Int(row, 1),
                                       .window_start = rows.Int(row, 2),
                                       .window_size = rows.Int(row, 3),
                                       .cap = rows.Int(row, 4),
                                       .due = rows.Int(row, 5),
                                       .oldest_due = rows.Int(row, 6),
                                       .later = rows.Int(row, 12),
                                       .claimed = rows.Int(row, 7),
                                       .granted = rows.Int(row, 8),
                                       .failed = rows.Int(row, 9),
                                       .executed = rows.Int(row, 10) != 0,
                                       .calendar = std::move(*calendar)});
                 }
                 return backlogs;
               });
}

}  // namespace weir::slots::postgres
