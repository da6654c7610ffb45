#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "admin/audit_log.h"
#include "weir/result.h"

namespace weir::policy {

/// Filters a log that cannot filter by action itself: `read` returns entries older than its first
/// argument, at most as many as its second says, and its pages are searched one after the other.
using ReadEntryPage = std::function<Result<std::vector<AuditEntry>>(std::int64_t, std::size_t)>;
Result<std::vector<AuditEntry>> SelectActions(const AuditQuery& query, const ReadEntryPage& read);

/// The query for any SQL database: the text after WHERE, with a `?` for each value.
struct AuditCondition {
  std::string text;
  std::vector<std::variant<std::int64_t, std::string>> values;
};
AuditCondition ConditionOf(const AuditQuery& query);

}  // namespace weir::policy
