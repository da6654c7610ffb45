#pragma once

// Runs the statements on the policies' tables.

#include <array>
#include <memory>
#include <string_view>

#include "admin/sql/session.h"
#include "weir/result.h"

namespace weir::policy::sql {

using RowsResult = Result<std::unique_ptr<Rows>>;

template <typename... Values>
RowsResult Run(Session& session, std::string_view sql, const Values&... values) {
  const std::array<Value, sizeof...(Values)> list = {Value(values)...};
  return session.Run(sql, list);
}

template <typename... Values>
Status Do(Session& session, std::string_view sql, const Values&... values) {
  RowsResult rows = Run(session, sql, values...);
  if (!rows.ok()) return rows.error();
  return {};
}

/// Runs `body` as one transaction.
template <typename T, typename Body>
Result<T> InTransaction(Session& session, Body body) {
  if (Status begun = session.Begin(); !begun.ok()) return begun.error();
  Result<T> result = body();
  if (!result.ok()) {
    session.Rollback();
    if (result.error().code != Code::kDeadlineExceeded) return result;
    return Error{Code::kUnavailable, result.error().message};
  }
  Status committed = session.Commit();
  if (committed.ok()) return result;
  if (committed.error().code != Code::kUnavailable) return committed.error();
  return Error{Code::kDeadlineExceeded,
               "it is unknown whether the change was made; check before you repeat it: " +
                   committed.error().message};
}

}  // namespace weir::policy::sql
