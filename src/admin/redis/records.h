#pragma once

// How policies and entries of the audit log are written in Redis: fields one after the other, each
// preceded by its length ("5:hello,"), so that they can contain any bytes and people can read
// them.

#include <string>
#include <string_view>

#include "admin/audit_log.h"
#include "admin/policy_store.h"
#include "weir/result.h"

namespace weir::policy::redis {

std::string PolicyRecord(const StoredPolicy& policy);
/// kInternal if it is damaged.
Result<StoredPolicy> ReadPolicyRecord(std::string_view record);

/// Without its ID, which is the record's name.
std::string EntryRecord(const AuditEntry& entry);
Result<AuditEntry> ReadEntryRecord(std::int64_t id, std::string_view record);

}  // namespace weir::policy::redis
