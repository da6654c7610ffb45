#include <string>
#include <utility>

#include "slots/sqlite/configs.h"
#include "slots/sqlite/execution.h"
#include "slots/sqlite/sql.h"
#include "slots/sqlite/transaction.h"
#include "slots/window.h"

// The execution backlog of each config.

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

std::vector<std::string> ClassesOf(const StoredConfig& stored) {
  std::vector<std::string> classes;
  for (const auto& [name, weight] : stored.config.tenants) classes.push_back(name);
  if (classes.empty()) classes.emplace_back();
  return classes;
}

/// Events of the present window that are not due yet.
Result<std::int64_t> CountSoon(Connection& connection, const StoredConfig& stored,
                               const Backlog& backlog) {
  std::int64_t soon = 0;
  for (const std::string& name : ClassesOf(stored)) {
    const Result<std::int64_t> number =
        connection.ReadNumber(kCountSoon, stored.id, name, backlog.now,
                              backlog.window_start + backlog.window_size, kMaxCounted);
    if (!number.ok()) return number.error();
    soon += *number;
  }
  return soon;
}

Status ReadDue(Connection& connection, const StoredConfig& stored, Backlog& backlog) {
  for (const std::string& name : ClassesOf(stored)) {
    Result<Statement> query = connection.Prepare(kCountDue);
    if (!query.ok()) return query.error();
    Result<bool> row = query->BindAll(stored.id, name, backlog.now, kMaxCounted).Step();
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
  const Result<std::int64_t> soon = CountSoon(connection, stored, backlog);
  if (!soon.ok()) return soon.error();
  Status failed;
  const auto read = [&](std::string_view sql, const auto&... values) {
    const Result<std::int64_t> number = connection.ReadNumber(sql, stored.id, values...);
    if (!number.ok()) failed = number.error();
    return number.ok() ? *number : 0;
  };
  backlog.later = *soon + read(kCountLater, backlog.window_start);
  backlog.claimed = read(kCountClaimed);
  backlog.granted = read(kReadGranted, config.window_size, backlog.window_start);
  backlog.failed = read(kCountFailed, kMaxCounted);
  backlog.executed = read(kHasExecuted) != 0;
  if (!failed.ok()) return failed.error();
  return backlog;
}

}  // namespace

Result<std::vector<Backlog>> ReadBacklogs(Connection& connection, Millis now) {
  if (now == 0) now = MachineMillis();
  const auto names = connection.ReadAll(
      kConfigNames, [](const Statement& row) { return std::string(row.Text(0)); });
  if (!names.ok()) return names.error();
  std::vector<Backlog> backlogs;
  for (const std::string& name : *names) {
    Result<std::optional<StoredConfig>> stored = LoadLatest(connection, name);
    if (!stored.ok()) return stored.error();
    Result<Backlog> backlog = ReadBacklog(connection, **stored, now);
    if (!backlog.ok()) return backlog.error();
    backlogs.push_back(std::move(*backlog));
  }
  return backlogs;
}

}  // namespace weir::slots::sqlite
