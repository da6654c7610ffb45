#pragma once

// Ends policies whose expiresAt has passed, and puts what they replaced in force again.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "admin/policy_store.h"
#include "policy/catalog.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::admin {

/// Of several nodes with the same store, one does it; while the store accepts no changes, each node
/// ends them for itself.
///
/// EndExpired must be called from one thread. The store's callbacks keep the object alive, so that
/// it may be released at any time; the store and the catalog must outlive them.
class PolicyExpiry : public std::enable_shared_from_this<PolicyExpiry> {
 public:
  PolicyExpiry(policy::PolicyStore& store, policy::Catalog& catalog);

  /// Cheap when there are none; call it every second.
  void EndExpired(Nanos now);

 private:
  /// What is restored when a policy ends.
  struct Before {
    std::int64_t version = 0;  ///< of the policy that ends
    std::optional<policy::StoredPolicy> policy = {};
  };

  std::optional<Before> Find(const policy::StoredPolicy& policy) const;
  void Keep(const policy::StoredPolicy& policy, std::optional<policy::StoredPolicy> before);
  /// The number of reads in progress; nullopt if this policy is already being read.
  std::optional<std::size_t> Reading(const policy::StoredPolicy& policy) const;
  void ForgetOthers(const std::set<std::string, std::less<>>& keys);

  /// When to look at it again.
  Nanos Look(const policy::StoredPolicy& policy, Nanos now, std::size_t& reads);
  void LookAhead(const policy::StoredPolicy& policy);
  void EndOne(const policy::StoredPolicy& expired);
  void EndHere(const policy::StoredPolicy& expired, const Error& why);

  policy::PolicyStore& store_;
  policy::Catalog& catalog_;

  // By key, for policies that end soon, so that they can end even without the database.
  mutable std::mutex mutex_;
  std::map<std::string, Before, std::less<>> known_;
  std::set<std::pair<std::string, std::int64_t>> reading_;  // keys and versions being read

  // Used on EndExpired's thread only.
  std::uint64_t seen_version_ = 0;
  Nanos next_expiry_ = 0;  // 0: none
};

}  // namespace weir::admin
