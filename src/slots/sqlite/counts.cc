#include "slots/sqlite/counts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "slots/window.h"

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

Status Add(Connection& connection, std::int64_t config_id, GrantWindow window,
           std::string_view column, std::int64_t count) {
  Result<Statement> upsert = connection.Prepare(
      column == "granted"
          ? "INSERT INTO rate_limit_execution(config_id, window_ms, window_start, granted) "
            "VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET granted = granted + ?4"
      : column == "finished"
          ? "UPDATE rate_limit_execution SET finished = finished + ?4 "
            "WHERE config_id = ?1 AND window_ms = ?2 AND window_start = ?3"
          : "INSERT INTO rate_limit_execution(config_id, window_ms, window_start, spilled) "
            "VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET spilled = spilled + ?4");
  if (!upsert.ok()) return upsert.error();
  upsert->Bind(1, config_id).Bind(2, window.size).Bind(3, window.start);
  return upsert->Bind(4, count).Run();
}

Result<std::int64_t> GrantsUsed(Connection& connection, std::int64_t config_id,
                                GrantWindow window) {
  Result<Statement> query = connection.Prepare(
      "SELECT coalesce((SELECT granted + spilled FROM rate_limit_execution "
      "  WHERE config_id = ?1 AND window_ms = ?2 AND window_start = ?3), 0) "
      "+ coalesce((SELECT sum(granted - finished) FROM rate_limit_execution "
      "  WHERE config_id = ?1 AND granted > finished AND window_start < ?3 + ?2 "
      "  AND NOT (window_ms = ?2 AND window_start = ?3) "
      "  AND (window_ms = ?2 OR window_start + window_ms <= ?3)), 0) "
      "+ coalesce((SELECT sum(x.granted + x.spilled) FROM (SELECT DISTINCT window_ms AS size "
      "  FROM rate_limit_config WHERE config_id = ?1 AND window_ms <> ?2) o "
      "  JOIN rate_limit_execution x ON x.config_id = ?1 AND x.window_ms = o.size "
      "  AND x.window_start > ?3 - o.size AND x.window_start < ?3 + ?2), 0)");
  if (!query.ok()) return query.error();
  Result<bool> row = query->Bind(1, config_id).Bind(2, window.size).Bind(3, window.start).Step();
  if (!row.ok()) return row.error();
  return query->Int(0);
}

// The first windows after this one that grants for later ones fall into.
Result<std::vector<Millis>> LaterWithGrants(Connection& connection, std::int64_t config_id,
                                            GrantWindow window) {
  Result<Statement> query = connection.Prepare(
      "SELECT DISTINCT max(?3 + ?2, x.window_start - x.window_start % ?2) "
      "FROM (SELECT DISTINCT window_ms AS size FROM rate_limit_config WHERE config_id = ?1) o "
      "JOIN rate_limit_execution x ON x.config_id = ?1 AND x.window_ms = o.size "
      "AND x.window_start > ?3 + ?2 - o.size WHERE x.granted > 0");
  if (!query.ok()) return query.error();
  query->Bind(1, config_id).Bind(2, window.size).Bind(3, window.start);
  std::vector<Millis> windows;
  for (;;) {
    Result<bool> row = query->Step();
    if (!row.ok()) return row.error();
    if (!*row) return windows;
    windows.push_back(query->Int(0));
  }
}

}  // namespace

Result<std::int64_t> GrantsLeft(Connection& connection, std::int64_t config_id, GrantWindow window,
                                std::int64_t max) {
  Result<std::vector<Millis>> windows = LaterWithGrants(connection, config_id, window);
  if (!windows.ok()) return windows.error();
  windows->push_back(window.start);
  std::int64_t left = max;
  for (const Millis start : *windows) {
    Result<std::int64_t> used = GrantsUsed(connection, config_id, {window.size, start});
    if (!used.ok()) return used.error();
    left = std::min(left, max - *used);
  }
  return left;
}

Status CountGrants(Connection& connection, std::int64_t config_id, GrantWindow window,
                   std::int64_t count) {
  return Add(connection, config_id, window, "granted", count);
}

Status CountEnd(Connection& connection, std::int64_t config_id, GrantWindow window, Millis at) {
  if (Status s = Add(connection, config_id, window, "finished", 1); !s.ok()) return s;
  const Millis later = WindowOf(at, window.size);
  if (later <= window.start) return {};
  return Add(connection, config_id, {window.size, later}, "spilled", 1);
}

}  // namespace weir::slots::sqlite
