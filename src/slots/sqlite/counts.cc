#include "slots/sqlite/counts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "slots/sqlite/sql.h"
#include "slots/window.h"

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

Status Add(Connection& connection, std::int64_t config_id, GrantWindow window,
           std::string_view column, std::int64_t count) {
  Result<Statement> upsert = connection.Prepare(column == "granted"    ? kAddGranted
                                                : column == "finished" ? kAddFinished
                                                                       : kAddSpilled);
  if (!upsert.ok()) return upsert.error();
  upsert->Bind(1, config_id).Bind(2, window.size).Bind(3, window.start);
  return upsert->Bind(4, count).Run();
}

Result<std::int64_t> GrantsUsed(Connection& connection, std::int64_t config_id,
                                GrantWindow window) {
  Result<Statement> query = connection.Prepare(kGrantsUsed);
  if (!query.ok()) return query.error();
  Result<bool> row = query->Bind(1, config_id).Bind(2, window.size).Bind(3, window.start).Step();
  if (!row.ok()) return row.error();
  return query->Int(0);
}

// The first windows after this one that grants for later ones fall into.
Result<std::vector<Millis>> LaterWithGrants(Connection& connection, std::int64_t config_id,
                                            GrantWindow window) {
  Result<Statement> query = connection.Prepare(kLaterWithGrants);
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
