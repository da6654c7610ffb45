#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "admin/audit_log.h"
#include "weir/result.h"

namespace weir::admin {

/// Which change of a target an undo takes back. An undo and what it took back cancel each other, so
/// that the change before them can be undone next, as in an editor. `entries` are those of one
/// target, latest first.

/// The latest change that no undo has taken back; 0: none is known.
std::int64_t InEffect(const std::vector<policy::AuditEntry>& entries);

/// kFailedPrecondition, naming what to undo first, unless the entry is the one in effect or the
/// latest. To undo an undo makes the change again that it took back. `otherwise` ends the sentence
/// for who would rather not undo that: ", or roll back to a version".
weir::Status CheckTurn(const policy::AuditEntry& entry,
                       const std::vector<policy::AuditEntry>& entries,
                       std::string_view otherwise = {});

}  // namespace weir::admin
