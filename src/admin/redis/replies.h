#pragma once

#include <vector>

#include "admin/audit_log.h"
#include "drivers/redis/connection.h"
#include "weir/result.h"

namespace weir::policy::redis {

Error NotUnderstood();

/// [id, record, …]
Result<std::vector<AuditEntry>> EntriesIn(const weir::redis::Reply& list);

}  // namespace weir::policy::redis
