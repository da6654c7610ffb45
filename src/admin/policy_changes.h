#pragma once

// Changes of policies as the admin API offers them. The store makes each of them atomically, with
// its audit log entry.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "admin/policy_store.h"
#include "policy/catalog.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::admin {

/// Reads a policy from text that policy::ToJson wrote.
Result<policy::StoredPolicy> PolicyOf(const std::string& json);

/// kInvalidArgument if `end` has passed; 0 means that the policy does not end.
Status CheckEnd(Nanos end);

class PolicyExpiry;

/// Changes policies. `done` is called when the change is on disk, in force and in the audit log.
///
/// Thread-safe, except for EndExpired. Callbacks run on a thread of the store, or before the call
/// returns. All arguments must outlive the last change; the object itself need not.
class PolicyChanges {
 public:
  /// The policy now in force; nullopt after a deletion.
  using Done = std::function<void(Result<std::optional<policy::StoredPolicy>>)>;

  PolicyChanges(policy::PolicyStore& store, policy::Catalog& catalog);

  /// What Create or Update would make of the policy now, as far as this node knows; changes
  /// nothing.
  Result<std::optional<policy::StoredPolicy>> Check(policy::StoredPolicy policy) const;

  void Create(policy::StoredPolicy policy, std::string who, Done done);
  /// `version`: only if it is the one in force, otherwise kFailedPrecondition; 0: any.
  void Update(policy::StoredPolicy policy, std::string who, Done done, std::int64_t version = 0);
  void Delete(std::string key, std::string who, Done done, std::int64_t version = 0);
  /// When a restored policy ends; 0: never. nullopt: when it would have ended, but that fails with
  /// kFailedPrecondition if it has passed: a temporary policy does not become permanent.
  using End = std::optional<Nanos>;

  /// Restores the policy as of `version`; kNotFound if its history has no such version.
  void RollBack(const std::string& key, std::int64_t version, End end, std::string who, Done done);
  /// Undoes a change. kFailedPrecondition if its target was changed since (see CheckTurn), or
  /// if it is of a kind that cannot be undone.
  void Undo(std::int64_t id, End end, std::string who, Done done);

  /// See PolicyExpiry.
  void EndExpired(Nanos now);

 private:
  policy::PolicyStore& store_;
  const policy::Catalog& catalog_;
  const std::shared_ptr<PolicyExpiry> expiry_;
};

/// Makes a change and writes a line about it to the program's log.
void Submit(policy::PolicyStore& store, policy::PolicyEdit edit, PolicyChanges::Done done);

}  // namespace weir::admin
