#include "slots/sqlite/counts.h"

#include <algorithm>

#include "slots/sqlite/sql.h"
#include "slots/window.h"

namespace weir::slots::sqlite {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

Result<std::int64_t> GrantsLeft(Connection& connection, std::int64_t config_id, GrantWindow window,
                                std::int64_t max, Millis lease) {
  // The first windows after this one in which later grants are counted, as far as this window's
  // grants may still be open when they begin.
  auto windows = connection.ReadAll(
      kLaterWithGrants, [](const Statement& row) { return row.Int(0); }, config_id, window.size,
      window.start, lease);
  if (!windows.ok()) return windows.error();
  windows->push_back(window.start);
  std::int64_t left = max;
  for (const Millis start : *windows) {
    Result<std::int64_t> used = connection.ReadNumber(kGrantsUsed, config_id, window.size, start);
    if (!used.ok()) return used.error();
    left = std::min(left, max - *used);
  }
  return left;
}

Status CountGrants(Connection& connection, std::int64_t config_id, GrantWindow window,
                   std::int64_t count) {
  return connection.Run(kAddGranted, config_id, window.size, window.start, count);
}

Status CountEnd(Connection& connection, std::int64_t config_id, GrantWindow window, Millis at) {
  Status s = connection.Run(kAddFinished, config_id, window.size, window.start, 1);
  if (!s.ok()) return s;
  const Millis later = WindowOf(at, window.size);
  if (later <= window.start) return {};
  return connection.Run(kAddSpilled, config_id, window.size, later, 1);
}

}  // namespace weir::slots::sqlite
