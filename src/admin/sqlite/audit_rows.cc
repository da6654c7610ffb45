#include "admin/sqlite/audit_rows.h"

#include <string>
#include <utility>

#include "admin/audit_query.h"
#include "admin/sqlite/sql.h"

namespace weir::policy::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

AuditEntry FromRow(const Statement& row) {
  return {row.Int(0),
          row.Int(1),
          std::string(row.Text(2)),
          std::string(row.Text(3)),
          std::string(row.Text(4)),
          std::string(row.Text(5)),
          std::string(row.Text(6)),
          row.Int(7)};
}

Result<std::vector<AuditEntry>> Select(Connection& connection, const AuditCondition& condition) {
  Result<Statement> query = connection.Prepare(std::string(kSelectEntries) + ' ' + condition.text);
  if (!query.ok()) return query.error();
  int index = 0;
  for (const auto& value : condition.values) {
    std::visit([&](const auto& given) { query->Bind(++index, given); }, value);
  }
  std::vector<AuditEntry> entries;
  Status done = query->ForEach([&](const Statement& row) { entries.push_back(FromRow(row)); });
  if (!done.ok()) return done.error();
  return entries;
}

}  // namespace

std::span<const char* const> AuditSteps() { return {&kAudit1, 1}; }

Status InsertEntry(Connection& connection, AuditEntry& entry) {
  Status done = connection.Run(kInsertEntry, entry.at, entry.who, entry.action, entry.target,
                               entry.before, entry.after, entry.undoes);
  if (!done.ok()) return done;
  entry.id = connection.last_insert_rowid();
  return {};
}

Result<std::vector<AuditEntry>> ReadEntries(Connection& connection, const AuditQuery& query) {
  return Select(connection, ConditionOf(query));
}

Result<AuditEntry> ReadEntry(Connection& connection, std::int64_t id) {
  Result<std::vector<AuditEntry>> found = Select(connection, {"id = ?", {id}});
  if (!found.ok()) return found.error();
  if (found->empty()) return Error{Code::kNotFound, "no change with id " + std::to_string(id)};
  return std::move(found->front());
}

Result<std::size_t> TrimEntries(Connection& connection, std::size_t keep, Nanos since,
                                std::size_t most) {
  // Entries are stored in the order of their creation: only the oldest are read.
  if (Status done = connection.Run(kTrimEntries, since, keep, most); !done.ok()) {
    return done.error();
  }
  return static_cast<std::size_t>(connection.changes());
}

Result<std::int64_t> LatestEntryOf(Connection& connection, std::string_view target) {
  return connection.ReadNumber(kLatestEntryOf, target);
}

}  // namespace weir::policy::sqlite
