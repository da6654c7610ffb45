#pragma once

// What a change of a policy comes to, whatever the store: the same rules on all of them.

#include <cstdint>
#include <optional>

#include "admin/audit_log.h"
#include "admin/policy_store.h"
#include "policy/catalog.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::policy {

/// What the store has of the edited key at the moment of the change, read under its lock.
struct PolicyState {
  std::optional<StoredPolicy> now = {};
  std::int64_t new_version = 1;  ///< if it is not there and is made: see VersionAfter
  std::int64_t last_entry = 0;   ///< its latest entry of the audit log; 0: none
  std::size_t policies = 0;      ///< of all keys
};

/// From what to what. One of them may be nothing, but not both.
struct PolicyStep {
  std::optional<StoredPolicy> before = {};
  std::optional<StoredPolicy> after = {};  ///< without an id if it is new
};

/// What needs no look at the store: kInvalidArgument.
Status CheckEdit(const PolicyEdit& edit);

/// Errors: kNotFound, kAlreadyExists (here or in a file of the catalog), kFailedPrecondition,
/// kResourceExhausted, kInvalidArgument (a store that there is not).
Result<PolicyStep> Decide(const PolicyEdit& edit, const PolicyState& state, Nanos at,
                          const Catalog& catalog);

/// The entry of the audit log for a step.
AuditEntry EntryOf(const PolicyEdit& edit, const PolicyStep& step, Nanos at);

/// The other way round: what an entry of a policy's target says of its history. The action is the
/// entry's without "policy.": undo, expire.
PolicyChange ChangeOf(AuditEntry entry);

/// How entries name policies: "policy:" and the key.
inline constexpr std::string_view kPolicyTarget = "policy:";

}  // namespace weir::policy
