#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weir/clock.h"
#include "weir/result.h"

namespace weir::policy {

/// One change and who made it.
struct AuditEntry {
  std::int64_t id = 0;
  Nanos at = 0;
  std::string who = {};
  std::string action = {};  ///< "policy.update", "key.reset", "slots.config", …
  std::string target = {};  ///< "policy:user-123", "key:user-123", …
  std::string before = {};  ///< JSON, or empty
  std::string after = {};   ///< JSON, or empty
  std::int64_t undoes = 0;  ///< the entry that this one undid; 0: none
};

/// Which entries of the log, and how many at most.
struct AuditQuery {
  std::int64_t before = 0;  ///< only older ones; 0: all
  std::size_t limit = 100;
  std::string target = {};                ///< only this target; empty: all
  std::vector<std::string> actions = {};  ///< only these: "key.reset", or "key" for all of its kind
  std::vector<std::string> except = {};   ///< excludes these
};

/// The log of all changes through the admin API and of policy files. Stored with the policies, so
/// that a change of a policy and its entry are written together or not at all.
///
/// Thread-safe. Callbacks run on a thread of the log, or before the call returns; no call waits for
/// anything except a local disk.
class AuditLog {
 public:
  using Appended = std::function<void(Result<std::int64_t>)>;
  using Found = std::function<void(Result<AuditEntry>)>;
  using Trimmed = std::function<void(Result<std::size_t>)>;
  using Listed = std::function<void(Result<std::vector<AuditEntry>>)>;

  virtual ~AuditLog() = default;

  /// Assigns the entry's ID, and `entry.at` if it is 0. Passes the ID to `done` once it is on disk.
  virtual void Append(AuditEntry entry, Appended done) = 0;
  /// Latest first.
  virtual void ListEntries(AuditQuery query, Listed done) = 0;
  /// kNotFound if there is none.
  virtual void FindEntry(std::int64_t id, Found done) = 0;
  /// Deletes up to `most` of the oldest entries: those made before `since`, and those that are not
  /// among the latest `keep` (0: no such limit). Returns how many. A log that is also a history
  /// keeps the entries that the history needs.
  virtual void Trim(std::size_t keep, Nanos since, std::size_t most, Trimmed done) = 0;
};

}  // namespace weir::policy
