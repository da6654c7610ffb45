#pragma once

// Changes of policies: one after the other, each written to the audit log with what was before and
// what is after, so that it can be taken back.

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "policy/catalog.h"
#include "policy/policy_store.h"
#include "server/api/audit_log.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::server {

/// The policy that a text which policy::ToJson wrote tells of.
Result<policy::StoredPolicy> PolicyOf(const std::string& json);

/// Changes policies and keeps the audit log. A change is told done when it is on disk, in force and
/// in the log.
///
/// Thread-safe. Callbacks run on a thread of the store. Everything given must outlive the last
/// change.
class PolicyChanges {
 public:
  /// What is in force now; nothing after a deletion.
  using Done = std::function<void(Result<std::optional<policy::StoredPolicy>>)>;

  PolicyChanges(policy::PolicyStore& store, policy::Catalog& catalog, AuditLog& audit)
      : store_(store), catalog_(catalog), audit_(audit) {}

  void Create(policy::StoredPolicy policy, std::string who, Done done);
  void Update(policy::StoredPolicy policy, std::string who, Done done);
  void Delete(std::string key, std::string who, Done done);
  /// Makes the policy what it was in `version`; kNotFound if its history has no such version.
  void RollBack(std::string key, std::int64_t version, std::string who, Done done);
  /// Takes a change back. kFailedPrecondition if its target was changed since, or if it is of a
  /// kind that cannot be taken back.
  void Undo(std::int64_t id, std::string who, Done done);

  /// Ends the policies whose expiresAt has come. Cheap when there are none; call it every second.
  void EndExpired(Nanos now);

 private:
  // One change on its way. `wanted` nothing: delete.
  struct Change {
    std::string action;
    std::string who;
    std::string key;
    std::optional<policy::StoredPolicy> wanted = {};
    bool must_be_new = false;
    bool must_exist = false;
    std::int64_t undoes = 0;
    Nanos expiring = 0;  // not 0: only if it still ends then
    Done done;
    std::string before = {};  // filled when it begins
  };

  void Submit(Change change);
  void RunNext();
  void Run(Change& change);
  Status CheckBegin(const Change& change, const Result<policy::StoredPolicy>& now) const;
  void Finish(const Result<policy::StoredPolicy>& result);
  void End(Result<std::optional<policy::StoredPolicy>> outcome);
  std::optional<policy::StoredPolicy> StateBeforeExpiry(const std::string& key);

  policy::PolicyStore& store_;
  policy::Catalog& catalog_;
  AuditLog& audit_;

  std::mutex mutex_;
  std::deque<Change> queue_;  // the first one is under way

  // For EndExpired's thread.
  std::uint64_t seen_version_ = 0;
  Nanos next_expiry_ = 0;  // 0: none
};

}  // namespace weir::server
