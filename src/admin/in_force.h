#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
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

  /// Puts these in force in place of those before; if one of them is damaged, nothing changes.
  /// Those that this process cannot charge (Policy::unable) are logged.
  Status Put(PolicyMap policies);

  Result<StoredPolicy> Get(std::string_view key) const;
  PolicyStore::Page List(std::string_view after, std::size_t limit) const;

 private:
  Catalog& catalog_;
  mutable std::mutex mutex_;
  PolicyMap policies_;
  std::vector<std::string> unable_;  // as it was logged last
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

 protected:
  explicit StoreInForce(Catalog& catalog) : in_force_(catalog) {}

  InForce in_force_;
};

}  // namespace weir::policy
