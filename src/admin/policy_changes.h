#pragma once

// Changes of policies as the admin API offers them. The store makes each of them in one piece, with
// its entry of the audit log.

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

/// kInvalidArgument if a policy is to end at a moment that has passed; 0: it does not end.
Status CheckEnd(Nanos end);

class PolicyExpiry;

/// Changes policies. `done` is called when it is on disk, in force and in the audit log.
///
/// Thread-safe, but for EndExpired. Callbacks run on a thread of the store, or before the call
/// returns. Everything given must outlive the last change; the object itself need not.
class PolicyChanges {
 public:
  /// What is in force now; nothing after a deletion.
  using Done = std::function<void(Result<std::optional<policy::StoredPolicy>>)>;

  PolicyChanges(policy::PolicyStore& store, policy::Catalog& catalog);

  /// What Create or Update would make of the policy now, as far as this node knows; changes
  /// nothing.
  Result<std::optional<policy::StoredPolicy>> Check(policy::StoredPolicy policy) const;

  void Create(policy::StoredPolicy policy, std::string who, Done done);
  /// `version`: only if this is the one in force (kFailedPrecondition); 0: whichever is.
  void Update(policy::StoredPolicy policy, std::string who, Done done, std::int64_t version = 0);
  void Delete(std::string key, std::string who, Done done, std::int64_t version = 0);
  /// When a policy that comes back is to end; 0: never. Nothing: as it was to, but not if that
  /// moment has passed (kFailedPrecondition): what was meant for a while does not become permanent.
  using End = std::optional<Nanos>;

  /// Makes the policy what it was in `version`; kNotFound if its history has no such version.
  void RollBack(const std::string& key, std::int64_t version, End end, std::string who, Done done);
  /// Takes a change back. kFailedPrecondition if its target was changed since (see CheckTurn), or
  /// if it is of a kind that cannot be taken back.
  void Undo(std::int64_t id, End end, std::string who, Done done);

  /// See PolicyExpiry.
  void EndExpired(Nanos now);

 private:
  policy::PolicyStore& store_;
  const policy::Catalog& catalog_;
  const std::shared_ptr<PolicyExpiry> expiry_;
};

/// Makes a change, with its line in the program's log.
void Submit(policy::PolicyStore& store, policy::PolicyEdit edit, PolicyChanges::Done done);

}  // namespace weir::admin
