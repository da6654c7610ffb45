#include "slots/sqlite/slot_store.h"

#include <memory>
#include <string>
#include <utility>

#include "drivers/sqlite/valued.h"
#include "slots/batch.h"
#include "slots/sqlite/archive.h"
#include "slots/sqlite/claim_notes.h"
#include "slots/sqlite/configs.h"
#include "slots/sqlite/events.h"
#include "slots/sqlite/execution.h"
#include "slots/sqlite/restored.h"
#include "slots/sqlite/sql.h"
#include "slots/sqlite/transaction.h"

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Database;
using weir::sqlite::ReadFor;
using weir::sqlite::RunFor;
using weir::sqlite::Statement;
using weir::sqlite::WriteFor;

constexpr std::size_t kMaxExamples = 20;

Result<Findings> VerifyAll(Connection& connection) {
  Result<Statement> query = connection.Prepare(kVerify);
  if (!query.ok()) return query.error();
  Findings findings;
  Status read = query->ForEach([&](const Statement& row) {
    if (row.Int(2) > 0) ++findings.windows;
    findings.slots += row.Int(3);
    if (row.IsNull(5)) return;
    ++findings.problems;
    if (findings.examples.size() >= kMaxExamples) return;
    findings.examples.push_back(
        std::string(row.Text(0)) + " " + FormatInstant(row.Int(1)) + ": " +
        std::string(row.Text(5)) + " (counter " + std::to_string(row.Int(2)) + ", slots " +
        std::to_string(row.Int(3)) + ", maximum " + std::to_string(row.Int(4)) + ")");
  });
  if (!read.ok()) return read.error();
  return findings;
}

Result<std::vector<Answer>> AssignAll(Connection& connection, const std::vector<Ask>& asks) {
  const Batch batch(asks);
  std::vector<Answer> answers(asks.size());
  for (const ConfigGroup& group : batch.groups()) {
    if (Status s = AssignGroup(connection, asks, group, answers); !s.ok()) return s.error();
  }
  for (const std::size_t index : batch.CopyAnswers(asks, answers)) {
    Result<std::vector<Answer>> alone = AssignAll(connection, {asks[index]});
    if (!alone.ok()) return alone.error();
    answers[index] = std::move(alone->front());
  }
  return answers;
}

void MoveFor(Database& database, Moving moving, SlotStore::Done<std::optional<Answer>> done) {
  auto stayed = std::make_shared<Stayed>();
  WriteFor<std::optional<Answer>>(
      database,
      [stayed, done = std::move(done)](Result<std::optional<Answer>> answer) {
        if (!stayed->outcome) return done(std::move(answer));
        done(std::optional<Answer>(Answer{.outcome = *stayed->outcome}));
      },
      [stayed](Connection& connection, const Moving& asked) {
        return MoveEvent(connection, asked, *stayed);
      },
      std::move(moving));
}

Result<Config> PutNewConfig(Connection& connection, Config config) {
  config.created_at = MachineMillis();
  config.active = true;
  Result<std::int64_t> version = InsertConfig(connection, config);
  if (!version.ok()) return version.error();
  config.version = *version;
  return config;
}

Result<std::optional<Config>> GetActive(Connection& connection, const std::string& name) {
  Result<std::optional<StoredConfig>> found = LoadActive(connection, name);
  if (!found.ok()) return found.error();
  if (!found->has_value()) return std::optional<Config>();
  return std::optional<Config>(std::move((*found)->config));
}

Result<std::vector<WindowLoad>> LoadWindows(Connection& connection, const std::string& config,
                                            Millis from, std::int64_t limit) {
  return connection.ReadAll(
      kListWindows,
      [](const Statement& row) {
        return WindowLoad{row.Int(0), row.Int(1), row.Int(2), row.Int(3), row.Int(4) != 0};
      },
      config, from, limit);
}

}  // namespace

Result<std::unique_ptr<SqliteSlotStore>> SqliteSlotStore::Open(Database& database) {
  if (Status s = database.Migrate("slots", Migrations()); !s.ok()) return s.error();
  return std::unique_ptr<SqliteSlotStore>(new SqliteSlotStore(database));
}

void SqliteSlotStore::AssignMany(std::vector<Ask> asks, Done<std::vector<Answer>> done) {
  WriteFor(database_, std::move(done), AssignAll, std::move(asks));
}

void SqliteSlotStore::Look(std::string event_id, Done<std::optional<Event>> done) {
  ReadFor(database_, std::move(done), LookAt, std::move(event_id));
}

void SqliteSlotStore::Cancel(std::string event_id, Done<std::optional<Slot>> done) {
  WriteFor(database_, std::move(done), CancelEvent, std::move(event_id));
}

void SqliteSlotStore::Reschedule(MoveRequest request, Done<std::optional<Answer>> done) {
  MoveFor(database_, {std::move(request), false}, std::move(done));
}

void SqliteSlotStore::Restore(MoveRequest request, Done<std::optional<Answer>> done) {
  MoveFor(database_, {std::move(request), true}, std::move(done));
}

void SqliteSlotStore::ClaimDue(ClaimRequest request, Done<Claim> done) {
  WriteFor(database_, std::move(done), ClaimEvents, std::move(request));
}

void SqliteSlotStore::FinishMany(std::vector<Finish> ends, Done<std::vector<Finished>> done) {
  WriteFor(database_, std::move(done), FinishEvents, std::move(ends));
}

void SqliteSlotStore::TakeNotes(Millis now, Done<std::vector<ClaimNote>> done) {
  WriteFor(database_, std::move(done), TakeClaimNotes, now);
}

void SqliteSlotStore::ForgetNotes(std::vector<ClaimNote> notes, Done<std::size_t> done) {
  WriteFor(database_, std::move(done), ForgetClaimNotes, std::move(notes));
}

void SqliteSlotStore::ListDue(DueQuery query, Done<std::vector<Event>> done) {
  if (MayBeMany(query.state)) {
    RunFor(database_, &Database::ReadAllLater, std::move(done), ListEvents, std::move(query));
  } else {
    ReadFor(database_, std::move(done), ListEvents, std::move(query));
  }
}

void SqliteSlotStore::ListBacklogs(Millis now, Done<std::vector<Backlog>> done) {
  ReadFor(database_, std::move(done), ReadBacklogs, now);
}

void SqliteSlotStore::Retire(Retention retention, Done<Retired> done) {
  WriteFor(database_, std::move(done), RetireEvents, retention);
}

void SqliteSlotStore::MarkRestored(Millis now, Done<Restored> done) {
  WriteFor(database_, std::move(done), MarkFromBackup, now);
}

void SqliteSlotStore::PutConfig(Config config, Done<Config> done) {
  WriteFor(database_, std::move(done), PutNewConfig, std::move(config));
}

void SqliteSlotStore::GetConfig(std::string name, Done<std::optional<Config>> done) {
  ReadFor(database_, std::move(done), GetActive, std::move(name));
}

void SqliteSlotStore::ListConfigs(Done<std::vector<Config>> done) {
  ReadFor(database_, std::move(done), LoadConfigs, std::nullopt);
}

void SqliteSlotStore::ListVersions(std::string name, Done<std::vector<Config>> done) {
  ReadFor(database_, std::move(done), LoadConfigs, std::move(name));
}

void SqliteSlotStore::Deactivate(std::string name, Done<bool> done) {
  WriteFor(database_, std::move(done), DeactivateConfig, std::move(name));
}

void SqliteSlotStore::ListWindows(std::string config, Millis from, std::size_t limit,
                                  Done<std::vector<WindowLoad>> done) {
  ReadFor(database_, std::move(done), LoadWindows, std::move(config), from,
          static_cast<std::int64_t>(limit));
}

void SqliteSlotStore::Verify(Done<Findings> done) {
  RunFor(database_, &Database::ReadAllLater, std::move(done), VerifyAll);
}

}  // namespace weir::slots::sqlite
