#pragma once

#include <cstdint>
#include <string_view>

#include "admin/policy_changes.h"
#include "weir/result.h"

namespace weir::admin {

/// Reads the body of an undo: {"expiresAt":"2030-01-31T12:00:00Z"}, or empty. As in a policy, the
/// field may be called expires_at and may be null, and an unknown field is an error: a misspelling
/// does not make a temporary policy permanent.
Result<PolicyChanges::End> ReadEnd(std::string_view body);

/// The body of a rollback: {"version":3,"expiresAt":"2030-01-31T12:00:00Z"}.
struct Rollback {
  std::int64_t version = 0;
  PolicyChanges::End end = {};
};
Result<Rollback> ReadRollback(std::string_view body);

}  // namespace weir::admin
