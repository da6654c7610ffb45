#pragma once

// The admin API of the service: status, usage of keys, reset, policies, explain.

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "limiter/policy_limiter.h"
#include "policy/catalog.h"
#include "policy/policy_store.h"
#include "server/api/admin_guard.h"
#include "server/api/operations.h"
#include "server/router.h"

namespace weir::server {

/// One key as a store names it (policy/keys.h).
struct HeldKey {
  std::string key;
  Algorithm algorithm;
};

/// What the admin API works on. Everything must outlive the routers.
struct AdminParts {
  const AdminGuard& guard;
  const Lifecycle& lifecycle;
  policy::Catalog& catalog;
  policy::PolicyStore& policies;
  limiter::Counters& counters;
  std::string store_name;  ///< without secrets
  /// The keys that the store holds, sorted, at most so many that come after `after`; empty if the
  /// store cannot list them.
  std::function<std::vector<HeldKey>(std::string_view after, std::size_t limit)> list_keys;
  std::function<std::size_t()> count_keys;
  StoreHealthOf store_health;
};

/// Adds /admin/status, /admin/metrics, /admin/reset, /admin/policies and /admin/explain. A router
/// belongs to one reactor, and `limiter` is that reactor's.
void AddAdmin(Router& router, const AdminParts& parts, limiter::PolicyLimiter& limiter);

/// The parts of it, one per file.
void AddAdminPolicies(Router& router, const AdminParts& parts);
void AddAdminKeys(Router& router, const AdminParts& parts, limiter::PolicyLimiter& limiter);
void AddAdminExplain(Router& router, const AdminParts& parts, limiter::PolicyLimiter& limiter);

/// Reads ?limit= (1 to 1000, 100 if absent) and ?cursor=; nothing, with the reason in `problem`, if
/// they are not valid.
struct PageQuery {
  std::size_t limit = 100;
  std::string cursor;
};
Result<PageQuery> ReadPage(std::string_view query);

}  // namespace weir::server
