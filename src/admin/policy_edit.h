#pragma once

// Decides what a change of a policy results in, by the same rules for every store.

#include <cstdint>
#include <optional>

#include "admin/audit_log.h"
#include "admin/policy_store.h"
#include "policy/catalog.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::policy {

/// The store's state for the edited key at the moment of the change, read under its lock.
struct PolicyState {
  std::optional<StoredPolicy> now = {};
  std::int64_t new_version = 1;  ///< if the policy is created: see VersionAfter
  std::int64_t last_entry = 0;   ///< its latest entry of the audit log; 0: none
  std::size_t policies = 0;      ///< of all keys
};

/// A change from one state to another. Either may be empty, but not both.
struct PolicyStep {
  std::optional<StoredPolicy> before = {};
  std::optional<StoredPolicy> after = {};  ///< without an id if it is new
};

/// The checks that do not depend on the store: kInvalidArgument.
Status CheckEdit(const PolicyEdit& edit);

/// Errors: kNotFound, kAlreadyExists (here or in a file of the catalog), kFailedPrecondition,
/// kResourceExhausted, kInvalidArgument (an unknown store).
Result<PolicyStep> Decide(const PolicyEdit& edit, const PolicyState& state, Nanos at,
                          const Catalog& catalog);

/// The entry of the audit log for a step.
AuditEntry EntryOf(const PolicyEdit& edit, const PolicyStep& step, Nanos at);

/// The reverse: the change of a policy that an audit log entry describes. The action is the
/// entry's without "policy.": undo, expire.
PolicyChange ChangeOf(AuditEntry entry);

/// The prefix of the names that entries use for policies; the key follows.
inline constexpr std::string_view kPolicyTarget = "policy:";

}  // namespace weir::policy
