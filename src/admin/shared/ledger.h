#pragma once

// What nodes that share policies need from the storage that holds them, be it a
// SQL database or Redis.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "admin/audit_log.h"
#include "admin/in_force.h"
#include "admin/policy_edit.h"
#include "admin/policy_store.h"
#include "policy/catalog.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::policy::shared {

/// All policies and the number of changes that led to them.
struct Snapshot {
  std::int64_t changes = 0;
  PolicyMap policies = {};
};

/// A change that was made.
struct Made {
  std::int64_t changes = 0;  ///< its number, counted from 1
  PolicyStep step = {};
};

/// Policies with their history and audit log, read and written by blocking calls, one at a time.
/// kUnavailable: the storage is down and nothing was changed; kDeadlineExceeded: it is unknown
/// whether the change was made.
///
/// Thread safety: belongs to one thread at a time, but Abort may be called from any.
class Ledger {
 public:
  virtual ~Ledger() = default;

  /// Creates or updates the tables, if there are any.
  virtual Status Migrate() = 0;

  /// The number of changes of policies so far.
  virtual Result<std::int64_t> ReadChanges() = 0;
  virtual Result<Snapshot> ReadAll() = 0;
  /// The last result of ReadAll is in force: it counts as known.
  virtual void Accept() {}
  /// Makes a change after all earlier ones and before all later ones, whichever node they
  /// are from.
  virtual Result<Made> Make(const PolicyEdit& edit, const Catalog& catalog) = 0;

  /// Latest changes first; `key` empty: of all policies.
  virtual Result<std::vector<PolicyChange>> ReadHistory(const std::string& key,
                                                        std::size_t limit) = 0;
  /// Returns the entry's ID.
  virtual Result<std::int64_t> AppendEntry(const AuditEntry& entry) = 0;
  /// Latest first.
  virtual Result<std::vector<AuditEntry>> ReadEntries(const AuditQuery& query) = 0;
  /// kNotFound if there is none.
  virtual Result<AuditEntry> ReadEntry(std::int64_t id) = 0;
  /// See AuditLog::Trim.
  virtual Result<std::size_t> Trim(std::size_t keep, Nanos since, std::size_t most) = 0;

  /// What this node knows: the changes that ReadAll and Make have returned. Empty for storage
  /// that loses nothing. For Recall, after a restart.
  virtual std::string mark() const { return {}; }
  /// Tells the ledger that this node knows the policies that `mark` names, from an earlier run.
  virtual void Recall(const std::string& /*mark*/) {}
  /// Whether the last ReadChanges found that the storage has lost some of what this node knows, as
  /// a Redis without persistence does on a restart. Others may have made changes since.
  virtual bool lost() const noexcept { return false; }
  /// If lost: restores what this node knows and the storage lacks, unless another node already has.
  virtual Status Restore(const PolicyMap& /*policies*/) { return {}; }

  /// Calls `heard` on a thread of its own for changes that others make, and whenever one may
  /// have been missed. Does nothing if the storage cannot notify.
  virtual void Listen(std::function<void()> /*heard*/) {}  // NOLINT: one that can keeps it
  /// Whether every change made now is notified.
  virtual bool listening() const noexcept { return false; }

  /// Makes pending and later calls fail soon.
  virtual void Abort() noexcept {}
};

}  // namespace weir::policy::shared
