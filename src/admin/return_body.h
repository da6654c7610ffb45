#pragma once

#include <cstdint>
#include <string_view>

#include "admin/policy_changes.h"
#include "weir/result.h"

namespace weir::admin {

/// The body of an undo: {"expiresAt":"2030-01-31T12:00:00Z"}, or empty. As in a policy, the field
/// may be called expires_at, may be null, and an unknown one is an error: what was meant for a
/// while does not become permanent by a misspelling.
Result<PolicyChanges::End> ReadEnd(std::string_view body);

/// What a rollback asks for: {"version":3,"expiresAt":"2030-01-31T12:00:00Z"}.
struct Rollback {
  std::int64_t version = 0;
  PolicyChanges::End end = {};
};
Result<Rollback> ReadRollback(std::string_view body);

}  // namespace weir::admin
