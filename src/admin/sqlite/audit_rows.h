#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "admin/audit_log.h"
#include "drivers/sqlite/connection.h"

namespace weir::policy::sqlite {

/// The table of the audit log, by version; see sqlite::Migrate.
std::span<const char* const> AuditSteps();

/// Sets entry.id.
Status InsertEntry(weir::sqlite::Connection& connection, AuditEntry& entry);
/// Latest first.
Result<std::vector<AuditEntry>> ReadEntries(weir::sqlite::Connection& connection,
                                            const AuditQuery& query);
/// kNotFound if there is none.
Result<AuditEntry> ReadEntry(weir::sqlite::Connection& connection, std::int64_t id);
/// See AuditLog::Trim.
Result<std::size_t> TrimEntries(weir::sqlite::Connection& connection, std::size_t keep, Nanos since,
                                std::size_t most);
/// The id of the latest entry of a target; 0: none.
Result<std::int64_t> LatestEntryOf(weir::sqlite::Connection& connection, std::string_view target);

}  // namespace weir::policy::sqlite
