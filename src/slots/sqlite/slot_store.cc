#include "slots/sqlite/slot_store.h"

#include <chrono>
#include <string>
#include <utility>

#include "slots/batch.h"
#include "slots/sqlite/archive.h"
#include "slots/sqlite/configs.h"
#include "slots/sqlite/events.h"
#include "slots/sqlite/execution.h"
#include "slots/sqlite/schema.h"
#include "slots/sqlite/transaction.h"

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Database;
using weir::sqlite::Statement;

constexpr std::size_t kMaxExamples = 20;

// Runs `work(connection) → Result<T>` as a job and tells its value once it is on disk.
template <typename T, typename Work>
void WriteFor(Database& database, Work work, SlotStore::Done<T> done) {
  auto value = std::make_shared<std::optional<T>>();
  database.Write(
      [value, work = std::move(work)](Connection& connection) -> Status {
        Result<T> result = work(connection);
        if (!result.ok()) return result.error();
        *value = std::move(*result);
        return {};
      },
      [value, done = std::move(done)](const Status& status) {
        if (!status.ok()) return done(status.error());
        done(std::move(**value));
      });
}

/// `how` is one of Database's ways to read on a thread of its own.
template <typename T, typename Work>
void ReadFor(Database& database, Work work, SlotStore::Done<T> done,
             void (Database::*how)(Database::Job, Database::Done) = &Database::ReadLater) {
  auto value = std::make_shared<std::optional<T>>();
  (database.*how)(
      [value, work = std::move(work)](Connection& connection) -> Status {
        Result<T> result = work(connection);
        if (!result.ok()) return result.error();
        *value = std::move(*result);
        return {};
      },
      [value, done = std::move(done)](const Status& status) {
        if (!status.ok()) return done(status.error());
        done(std::move(**value));
      });
}

constexpr std::string_view kVerify = R"sql(
SELECT g.config_name, w.window_start, w.slot_count, w.n, w.cap, CASE
  WHEN w.slot_count IS NULL THEN 'slots without a counter'
  WHEN w.slot_count <> w.n THEN 'the counter differs from the number of slots'
  WHEN w.slot_count > w.cap THEN 'more slots than the maximum'
  WHEN NOT w.inside THEN 'a slot lies outside its window or before its requested time'
  WHEN w.status = 'CLOSED' AND NOT EXISTS (
    SELECT 1 FROM rate_limit_window_counter x WHERE x.config_id = w.config_id
      AND x.window_ms = w.window_ms AND x.window_start = w.window_start + w.window_ms)
    THEN 'a full window without a successor'
  END AS what
FROM (
  SELECT c.config_id, c.window_ms, c.window_start, c.slot_count, c.cap, c.status,
         coalesce(s.n, 0) + c.archived AS n, coalesce(s.inside, 1) AS inside
  FROM rate_limit_window_counter c LEFT JOIN counted s USING (config_id, window_ms, window_start)
  UNION ALL
  SELECT s.config_id, s.window_ms, s.window_start, NULL, 0, 'OPEN', s.n, 1
  FROM counted s WHERE NOT EXISTS (
    SELECT 1 FROM rate_limit_window_counter c WHERE c.config_id = s.config_id
      AND c.window_ms = s.window_ms AND c.window_start = s.window_start)) w
LEFT JOIN (SELECT DISTINCT config_id, config_name FROM rate_limit_config) g USING (config_id)
)sql";

constexpr std::string_view kCounted = R"sql(
WITH counted AS MATERIALIZED (
  SELECT config_id, window_ms, window_start, count(*) AS n,
         min(scheduled_time >= requested_time AND scheduled_time >= window_start
             AND scheduled_time < window_start + window_ms) AS inside
  FROM rate_limit_event_slot WHERE state <> 4 GROUP BY config_id, window_ms, window_start)
)sql";

Result<Findings> VerifyAll(Connection& connection) {
  Result<Statement> query = connection.Prepare(std::string(kCounted) + std::string(kVerify));
  if (!query.ok()) return query.error();
  Findings findings;
  for (;;) {
    Result<bool> row = query->Step();
    if (!row.ok()) return row.error();
    if (!*row) return findings;
    ++findings.windows;
    findings.slots += query->Int(3);
    if (query->IsNull(5)) continue;
    ++findings.problems;
    if (findings.examples.size() >= kMaxExamples) continue;
    findings.examples.push_back(
        std::string(query->Text(0)) + " " + FormatInstant(query->Int(1)) + ": " +
        std::string(query->Text(5)) + " (counter " + std::to_string(query->Int(2)) + ", slots " +
        std::to_string(query->Int(3)) + ", maximum " + std::to_string(query->Int(4)) + ")");
  }
}

void MoveFor(Database& database, Moving moving, SlotStore::Done<std::optional<Answer>> done) {
  auto stayed = std::make_shared<Stayed>();
  WriteFor<std::optional<Answer>>(
      database,
      [moving = std::move(moving), stayed](Connection& connection) {
        return MoveEvent(connection, moving, *stayed);
      },
      [stayed, done = std::move(done)](Result<std::optional<Answer>> answer) {
        if (!stayed->outcome) return done(std::move(answer));
        done(std::optional<Answer>(Answer{.outcome = *stayed->outcome}));
      });
}

}  // namespace

Result<std::unique_ptr<SqliteSlotStore>> SqliteSlotStore::Open(Database& database) {
  if (Status s = database.Migrate("slots", Migrations()); !s.ok()) return s.error();
  return std::unique_ptr<SqliteSlotStore>(new SqliteSlotStore(database));
}

void SqliteSlotStore::AssignMany(std::vector<Ask> asks, Done<std::vector<Answer>> done) {
  auto kept = std::make_shared<const std::vector<Ask>>(std::move(asks));
  WriteFor<std::vector<Answer>>(
      database_,
      [kept](Connection& connection) -> Result<std::vector<Answer>> {
        const Batch batch(*kept);
        std::vector<Answer> answers(kept->size());
        for (const ConfigGroup& group : batch.groups()) {
          Status s = AssignGroup(connection, *kept, group, answers);
          if (!s.ok()) return s.error();
        }
        batch.CopyAnswers(*kept, answers);
        return answers;
      },
      std::move(done));
}

void SqliteSlotStore::Look(std::string event_id, Done<std::optional<Event>> done) {
  ReadFor<std::optional<Event>>(
      database_,
      [event_id = std::move(event_id)](Connection& connection) {
        return LookAt(connection, event_id);
      },
      std::move(done));
}

void SqliteSlotStore::Cancel(std::string event_id, Done<std::optional<Slot>> done) {
  WriteFor<std::optional<Slot>>(
      database_,
      [event_id = std::move(event_id)](Connection& connection) {
        return CancelEvent(connection, event_id);
      },
      std::move(done));
}

void SqliteSlotStore::Reschedule(Ask ask, Done<std::optional<Answer>> done) {
  MoveFor(database_, {std::move(ask), false}, std::move(done));
}

void SqliteSlotStore::Restore(Ask ask, Done<std::optional<Answer>> done) {
  MoveFor(database_, {std::move(ask), true}, std::move(done));
}

void SqliteSlotStore::ClaimDue(ClaimRequest request, Done<Claim> done) {
  WriteFor<Claim>(
      database_,
      [request = std::move(request)](Connection& connection) {
        return ClaimEvents(connection, request);
      },
      std::move(done));
}

void SqliteSlotStore::FinishMany(std::vector<Finish> ends, Done<std::vector<Finished>> done) {
  auto kept = std::make_shared<const std::vector<Finish>>(std::move(ends));
  WriteFor<std::vector<Finished>>(
      database_, [kept](Connection& connection) { return FinishEvents(connection, *kept); },
      std::move(done));
}

void SqliteSlotStore::ListDue(DueQuery query, Done<std::vector<Event>> done) {
  ReadFor<std::vector<Event>>(
      database_,
      [query = std::move(query)](Connection& connection) { return ListEvents(connection, query); },
      std::move(done));
}

void SqliteSlotStore::ListBacklogs(Millis now, Done<std::vector<Backlog>> done) {
  ReadFor<std::vector<Backlog>>(
      database_, [now](Connection& connection) { return ReadBacklogs(connection, now); },
      std::move(done));
}

void SqliteSlotStore::Retire(Retention retention, Done<Retired> done) {
  WriteFor<Retired>(
      database_,
      [retention](Connection& connection) { return RetireEvents(connection, retention); },
      std::move(done));
}

void SqliteSlotStore::PutConfig(Config config, Done<Config> done) {
  using std::chrono::system_clock;
  config.created_at =
      std::chrono::duration_cast<std::chrono::milliseconds>(system_clock::now().time_since_epoch())
          .count();
  config.active = true;
  WriteFor<Config>(
      database_,
      [config = std::move(config)](Connection& connection) -> Result<Config> {
        Result<std::int64_t> version = InsertConfig(connection, config);
        if (!version.ok()) return version.error();
        Config stored = config;
        stored.version = *version;
        return stored;
      },
      std::move(done));
}

void SqliteSlotStore::GetConfig(std::string name, Done<std::optional<Config>> done) {
  ReadFor<std::optional<Config>>(
      database_,
      [name = std::move(name)](Connection& connection) -> Result<std::optional<Config>> {
        Result<std::optional<StoredConfig>> found = LoadActive(connection, name);
        if (!found.ok()) return found.error();
        if (!found->has_value()) return std::optional<Config>();
        return std::optional<Config>(std::move((*found)->config));
      },
      std::move(done));
}

void SqliteSlotStore::ListConfigs(Done<std::vector<Config>> done) {
  ReadFor<std::vector<Config>>(
      database_, [](Connection& connection) { return LoadConfigs(connection, std::nullopt); },
      std::move(done));
}

void SqliteSlotStore::ListVersions(std::string name, Done<std::vector<Config>> done) {
  ReadFor<std::vector<Config>>(
      database_,
      [name = std::move(name)](Connection& connection) { return LoadConfigs(connection, name); },
      std::move(done));
}

void SqliteSlotStore::Deactivate(std::string name, Done<bool> done) {
  WriteFor<bool>(
      database_,
      [name = std::move(name)](Connection& connection) {
        return DeactivateConfig(connection, name);
      },
      std::move(done));
}

void SqliteSlotStore::ListWindows(std::string config, Millis from, std::size_t limit,
                                  Done<std::vector<WindowLoad>> done) {
  ReadFor<std::vector<WindowLoad>>(
      database_,
      [config = std::move(config), from,
       limit](Connection& connection) -> Result<std::vector<WindowLoad>> {
        Result<Statement> query = connection.Prepare(
            "SELECT window_start, w.window_ms, slot_count, carried, status = 'OPEN' "
            "FROM rate_limit_config JOIN rate_limit_window_counter w USING (config_id, window_ms) "
            "WHERE config_name = ?1 AND active AND window_start >= ?2 "
            "ORDER BY window_start LIMIT ?3");
        if (!query.ok()) return query.error();
        query->Bind(1, config).Bind(2, from).Bind(3, static_cast<std::int64_t>(limit));
        std::vector<WindowLoad> windows;
        for (;;) {
          Result<bool> row = query->Step();
          if (!row.ok()) return row.error();
          if (!*row) return windows;
          windows.push_back(
              {query->Int(0), query->Int(1), query->Int(2), query->Int(3), query->Int(4) != 0});
        }
      },
      std::move(done));
}

void SqliteSlotStore::Verify(Done<Findings> done) {
  ReadFor<Findings>(database_, VerifyAll, std::move(done), &Database::ReadAllLater);
}

}  // namespace weir::slots::sqlite
