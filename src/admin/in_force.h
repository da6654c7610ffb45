#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admin/policy_store.h"
#include "policy/catalog.h"

namespace weir::policy {

/// Policies by their keys.
using PolicyMap = std::map<std::string, StoredPolicy, std::less<>>;

/// The stored policies that are in force in this process: what the admin API reads and what the
/// catalog has.
///
/// Thread-safe.
class InForce {
 public:
  /// The catalog must outlive this.
  explicit InForce(Catalog& catalog) : catalog_(catalog) {}

  /// Puts these in force instead of the previous ones; if one of them is damaged, nothing changes.
  /// Those that this process cannot charge (Policy::unable) are logged.
  Status Put(PolicyMap policies);

  /// Puts `before` in force instead of a stored policy that has expired (nullopt: no policy), until
  /// another version of it is stored. Get and List still return what is stored.
  Status End(const StoredPolicy& expired, std::optional<StoredPolicy> before);

  Result<StoredPolicy> Get(std::string_view key) const;
  PolicyStore::Page List(std::string_view after, std::size_t limit) const;

 private:
  /// A stored policy that is not in force, and what is in force instead.
  struct Ended {
    std::int64_t version = 0;
    Nanos expires_at = 0;
    std::optional<StoredPolicy> before = {};

    bool Is(const StoredPolicy& policy) const noexcept {
      return policy.version == version && policy.expires_at == expires_at;
    }
  };

  const StoredPolicy* Standing(const StoredPolicy& policy) const;
  Status PutLocked(const PolicyMap& policies);

  Catalog& catalog_;
  std::mutex putting_;                               // locked before mutex_
  std::map<std::string, Ended, std::less<>> ended_;  // guarded by putting_
  mutable std::mutex mutex_;
  PolicyMap policies_;
  std::vector<std::string> unable_;  // as last logged; guarded by putting_
};

/// A PolicyStore that answers from what is in force.
///
/// Thread safety: as PolicyStore.
class StoreInForce : public PolicyStore {
 public:
  Result<StoredPolicy> Get(std::string_view key) const final { return in_force_.Get(key); }
  Page List(std::string_view after, std::size_t limit) const final {
    return in_force_.List(after, limit);
  }
  Status EndHere(const StoredPolicy& expired, std::optional<StoredPolicy> before) final {
    return in_force_.End(expired, std::move(before));
  }

 protected:
  explicit StoreInForce(Catalog& catalog) : in_force_(catalog) {}

  InForce in_force_;
};

}  // namespace weir::policy
