#include <algorithm>
#include <string>
#include <utility>

#include "slots/sqlite/configs.h"
#include "slots/sqlite/execution.h"
#include "slots/sqlite/sql.h"
#include "slots/sqlite/transaction.h"
#include "slots/window.h"

// How the execution of each config stands.

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

Result<std::int64_t> Number(Connection& connection, std::string_view sql, std::int64_t id,
                            std::int64_t second = 0, std::int64_t third = 0) {
  Result<Statement> query = connection.Prepare(sql);
  if (!query.ok()) return query.error();
  query->Bind(1, id).Bind(2, second).Bind(3, third);
  Result<bool> row = query->Step();
  if (!row.ok()) return row.error();
  return *row ? query->Int(0) : 0;
}

Status ReadDue(Connection& connection, const StoredConfig& stored, Backlog& backlog) {
  std::vector<std::string> classes;
  for (const auto& [name, weight] : stored.config.tenants) classes.push_back(name);
  if (classes.empty()) classes.emplace_back();
  for (const std::string& name : classes) {
    Result<Statement> query = connection.Prepare(kCountDue);
    if (!query.ok()) return query.error();
    query->Bind(1, stored.id).Bind(2, name).Bind(3, backlog.now).Bind(4, kMaxCounted);
    Result<bool> row = query->Step();
    if (!row.ok()) return row.error();
    if (query->Int(0) == 0) continue;
    backlog.due += query->Int(0);
    if (backlog.oldest_due == 0 || query->Int(1) < backlog.oldest_due) {
      backlog.oldest_due = query->Int(1);
    }
  }
  return {};
}

Result<Backlog> ReadBacklog(Connection& connection, const StoredConfig& stored, Millis now) {
  const Config& config = stored.config;
  Backlog backlog{.config = config.name,
                  .now = now,
                  .window_start = WindowOf(now, config.window_size),
                  .window_size = config.window_size,
                  .cap = config.max_per_window,
                  .calendar = config.calendar};
  if (Status s = ReadDue(connection, stored, backlog); !s.ok()) return s.error();
  const auto read = [&](std::string_view sql, std::int64_t second, std::int64_t third,
                        std::int64_t& into) -> Status {
    Result<std::int64_t> number = Number(connection, sql, stored.id, second, third);
    if (!number.ok()) return number.error();
    into = *number;
    return {};
  };
  Status s = read(kCountLater, backlog.window_start, 0, backlog.later);
  if (!s.ok()) return s.error();
  s = read(kCountClaimed, 0, 0, backlog.claimed);
  if (!s.ok()) return s.error();
  s = read(kReadGranted, config.window_size, backlog.window_start, backlog.granted);
  if (!s.ok()) return s.error();
  s = read(kCountFailed, kMaxCounted, 0, backlog.failed);
  if (!s.ok()) return s.error();
  std::int64_t executed = 0;
  s = read(kHasExecuted, 0, 0, executed);
  if (!s.ok()) return s.error();
  backlog.executed = executed != 0;
  return backlog;
}

}  // namespace

Result<std::vector<Backlog>> ReadBacklogs(Connection& connection, Millis now) {
  if (now == 0) now = SystemMillis();
  std::vector<std::string> names;
  {
    Result<Statement> query = connection.Prepare(kConfigNames);
    if (!query.ok()) return query.error();
    for (;;) {
      Result<bool> row = query->Step();
      if (!row.ok()) return row.error();
      if (!*row) break;
      names.emplace_back(query->Text(0));
    }
  }
  std::vector<Backlog> backlogs;
  for (const std::string& name : names) {
    Result<std::optional<StoredConfig>> stored = LoadLatest(connection, name);
    if (!stored.ok()) return stored.error();
    Result<Backlog> backlog = ReadBacklog(connection, **stored, now);
    if (!backlog.ok()) return backlog.error();
    backlogs.push_back(std::move(*backlog));
  }
  return backlogs;
}

}  // namespace weir::slots::sqlite
