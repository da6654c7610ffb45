#pragma once

// The tables of policies in a database that many nodes share: weir_policy, weir_policy_match,
// weir_audit, and weir_policy_state, whose one row counts the changes and whose lock puts them in
// order. Each backend creates them in its own dialect; the statements are the same.

#include <cstdint>
#include <string>
#include <vector>

#include "admin/audit_log.h"
#include "admin/policy_edit.h"
#include "admin/policy_store.h"
#include "admin/shared/ledger.h"
#include "admin/sql/session.h"
#include "policy/catalog.h"

namespace weir::policy::sql {

/// The number of changes of policies so far.
Result<std::int64_t> ReadChanges(Session& session);

using shared::Made;
using shared::Snapshot;

/// All policies, as of one moment.
Result<Snapshot> ReadAll(Session& session);

/// Makes a change in one transaction, after all earlier ones and before all later ones,
/// whichever node they are from. kUnavailable: nothing was changed; kDeadlineExceeded: the server
/// did not say whether it committed.
Result<Made> Make(Session& session, const PolicyEdit& edit, const Catalog& catalog);

/// Latest changes first; `key` empty: of all policies.
Result<std::vector<PolicyChange>> ReadHistory(Session& session, const std::string& key,
                                              std::size_t limit);

/// Runs in one transaction; returns the entry's ID.
Result<std::int64_t> AppendEntry(Session& session, const AuditEntry& entry);
/// Entries older than `before` (0: all), latest first.
Result<std::vector<AuditEntry>> ReadEntries(Session& session, AuditQuery query);
/// kNotFound if there is none.
Result<AuditEntry> ReadEntry(Session& session, std::int64_t id);

}  // namespace weir::policy::sql
