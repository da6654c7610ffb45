#include "slots/sqlite/archive.h"

#include <string>
#include <vector>

#include "slots/sqlite/configs.h"
#include "slots/sqlite/sql.h"

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

struct Gone {
  std::string event;
  std::int64_t config_id;
  Millis size;
  Millis window;
  bool holds_place;
};

// The oldest of one config and state, up to what is left of the limit.
Status FindGone(Connection& connection, std::int64_t config_id, State state, Millis before,
                std::size_t limit, std::vector<Gone>& gone) {
  Result<Statement> query = connection.Prepare(kFindGone);
  if (!query.ok()) return query.error();
  query->BindAll(config_id, state, before, limit - gone.size());
  return query->ForEach([&](const Statement& row) {
    gone.push_back(
        {std::string(row.Text(0)), config_id, row.Int(1), row.Int(2), state == State::kDone});
  });
}

Status MoveOut(Connection& connection, const Gone& gone) {
  for (const char* sql : {kCopyToArchive, kDeleteEvent, kDeleteChanges}) {
    if (Status s = connection.Run(sql, gone.event); !s.ok()) return s;
  }
  if (!gone.holds_place) return {};
  return connection.Run(kCountArchived, gone.config_id, gone.size, gone.window);
}

}  // namespace

Result<Retired> RetireEvents(Connection& connection, const Retention& retention) {
  const auto ids = connection.ReadAll(kConfigIds, [](const Statement& row) { return row.Int(0); });
  if (!ids.ok()) return ids.error();
  std::vector<Gone> gone;
  for (const std::int64_t id : *ids) {
    for (const State state : {State::kDone, State::kCancelled}) {
      if (gone.size() >= retention.limit) break;
      Status s = FindGone(connection, id, state, retention.over_before, retention.limit, gone);
      if (!s.ok()) return s.error();
    }
  }
  for (const Gone& one : gone) {
    if (Status s = MoveOut(connection, one); !s.ok()) return s.error();
  }
  Status dropped = connection.Run(kDropArchived, retention.archived_before, retention.limit);
  if (!dropped.ok()) return dropped.error();
  return Retired{gone.size(), static_cast<std::size_t>(connection.changes())};
}

Result<std::optional<Event>> LookInArchive(Connection& connection, std::string_view event_id) {
  Result<Statement> query = connection.Prepare(kLookInArchive);
  if (!query.ok()) return query.error();
  Result<bool> row = query->Bind(1, event_id).Step();
  if (!row.ok()) return row.error();
  if (!*row) return std::optional<Event>();
  Result<std::string> name = NameOf(connection, query->Int(0));
  if (!name.ok()) return name.error();
  Event event;
  event.slot = {std::string(event_id), std::move(*name), std::string(query->Text(1)),
                query->Int(2),         query->Int(3),    query->Int(4)};
  event.state = static_cast<State>(query->Int(5));
  event.attempts = query->Int(6);
  event.created_at = query->Int(7);
  event.claimed_at = query->Int(8);
  event.claimed_by = query->Text(9);
  event.finished_at = query->Int(10);
  event.archived = true;
  return std::optional<Event>(std::move(event));
}

}  // namespace weir::slots::sqlite
