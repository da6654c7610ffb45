#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "admin/audit_log.h"
#include "weir/result.h"

namespace weir::admin {

/// Which change of a target can be undone. An undo and the change that it undid cancel out, so
/// that the change before them can be undone next, as in an editor. `entries` are those of one
/// target, latest first.

/// The latest change that has not been undone; 0: none is known.
std::int64_t InEffect(const std::vector<policy::AuditEntry>& entries);

/// kFailedPrecondition, naming what to undo first, unless the entry is the one in effect or the
/// latest. Undoing an undo makes the undone change again. `otherwise` ends the sentence
/// for who would rather not undo that: ", or roll back to a version".
weir::Status CheckTurn(const policy::AuditEntry& entry,
                       const std::vector<policy::AuditEntry>& entries,
                       std::string_view otherwise = {});

}  // namespace weir::admin
