#pragma once

// Changes of policies as the admin API offers them. The store makes each of them in one piece, with
// its entry of the audit log.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admin/policy_store.h"
#include "policy/catalog.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::admin {

/// Reads a policy from text that policy::ToJson wrote.
Result<policy::StoredPolicy> PolicyOf(const std::string& json);

/// kInvalidArgument if a policy is to end at a moment that has passed; 0: it does not end.
Status CheckEnd(Nanos end);

/// Changes policies. `done` is called when it is on disk, in force and in the audit log.
///
/// Thread-safe, but for EndExpired. Callbacks run on a thread of the store, or before the call
/// returns. Everything given must outlive the last change.
class PolicyChanges {
 public:
  /// What is in force now; nothing after a deletion.
  using Done = std::function<void(Result<std::optional<policy::StoredPolicy>>)>;

  PolicyChanges(policy::PolicyStore& store, policy::Catalog& catalog);

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

  /// Ends the policies whose expiresAt has come. Cheap when there are none; call it every second,
  /// on one thread. Of several nodes with the same store one will do it; while the store takes no
  /// changes, each ends them for itself.
  void EndExpired(Nanos now);

 private:
  void Submit(policy::PolicyEdit edit, Done done);
  void UndoInTurn(const policy::AuditEntry& entry, const std::vector<policy::AuditEntry>& entries,
                  End end, const std::string& who, const Done& done);
  /// What comes back when a policy ends.
  struct Before {
    std::int64_t version = 0;  ///< of the policy that ends
    std::optional<policy::StoredPolicy> policy = {};
  };
  /// By the policies' keys: of those that end soon, so that they end without the database, too.
  class Befores;

  /// When to look at it again.
  Nanos Look(const policy::StoredPolicy& policy, Nanos now, int& reads);
  void LookAhead(const policy::StoredPolicy& policy);
  void EndOne(const policy::StoredPolicy& expired);
  void EndHere(const policy::StoredPolicy& expired, const Error& why);

  policy::PolicyStore& store_;
  policy::Catalog& catalog_;

  const std::shared_ptr<Befores> befores_;  // also of who still reads when this object goes

  // For EndExpired's thread.
  std::uint64_t seen_version_ = 0;
  Nanos next_expiry_ = 0;  // 0: none
};

}  // namespace weir::admin
