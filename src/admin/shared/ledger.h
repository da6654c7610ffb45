#pragma once

// What nodes that share their policies need of the place where these are kept, whatever it is: a
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

/// All policies and the number of changes that they are the outcome of.
struct Snapshot {
  std::int64_t changes = 0;
  PolicyMap policies = {};
};

/// A change that was made.
struct Made {
  std::int64_t changes = 0;  ///< which one it was, counted from 1
  PolicyStep step = {};
};

/// Policies with their history and audit log, read and written by one call at a time that waits for
/// its answer. kUnavailable: the place is down and nothing was changed; kDeadlineExceeded: it did
/// not say whether the change was made.
///
/// Thread safety: belongs to one thread at a time, but Abort may be called from any.
class Ledger {
 public:
  virtual ~Ledger() = default;

  /// Makes the tables, if it has any, or brings them up to date.
  virtual Status Migrate() = 0;

  /// How many changes of policies there have been.
  virtual Result<std::int64_t> ReadChanges() = 0;
  virtual Result<Snapshot> ReadAll() = 0;
  /// What ReadAll answered last is in force: it counts as known.
  virtual void Accept() {}
  /// Makes a change after all that came before it and before all that follow, whichever node they
  /// are from.
  virtual Result<Made> Make(const PolicyEdit& edit, const Catalog& catalog) = 0;

  /// The latest changes first; `key` empty: of all.
  virtual Result<std::vector<PolicyChange>> ReadHistory(const std::string& key,
                                                        std::size_t limit) = 0;
  /// Answers the entry's id.
  virtual Result<std::int64_t> AppendEntry(const AuditEntry& entry) = 0;
  /// Latest first.
  virtual Result<std::vector<AuditEntry>> ReadEntries(const AuditQuery& query) = 0;
  /// kNotFound if there is none.
  virtual Result<AuditEntry> ReadEntry(std::int64_t id) = 0;
  /// As AuditLog::Trim.
  virtual Result<std::size_t> Trim(std::size_t keep, Nanos since, std::size_t most) = 0;

  /// What this node knows: the changes that ReadAll and Make have told it of. Empty for a place
  /// that loses nothing. For Recall, after a restart.
  virtual std::string mark() const { return {}; }
  /// This node knows the policies that `mark` names, from an earlier run.
  virtual void Recall(const std::string& /*mark*/) {}
  /// The last ReadChanges found that the place has lost some of what this node knows, as a Redis
  /// without persistence does when it is restarted. Others may have made changes since.
  virtual bool lost() const noexcept { return false; }
  /// It has: puts back what this node knows and the place lacks, unless another node already has.
  virtual Status Restore(const PolicyMap& /*policies*/) { return {}; }

  /// Calls `heard` on a thread of its own for changes that others make, and whenever something may
  /// have been missed. Does nothing where that is not to be had.
  virtual void Listen(std::function<void()> /*heard*/) {}  // NOLINT: one that can keeps it
  /// True: whatever changes now is heard.
  virtual bool listening() const noexcept { return false; }

  /// Makes what is under way, and all that follows, fail soon.
  virtual void Abort() noexcept {}
};

}  // namespace weir::policy::shared
