#pragma once

// The admin API of the service: status, usage of keys, reset, policies, explain.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/admin_guard.h"
#include "admin/audit_json.h"
#include "admin/config_changes.h"
#include "admin/live_totals.h"
#include "admin/operations.h"
#include "admin/policy_changes.h"
#include "admin/policy_store.h"
#include "limiter/assignments.h"
#include "limiter/policy_limiter.h"
#include "policy/catalog.h"
#include "protocol/http/query.h"
#include "protocol/http/router.h"
#include "store/held_here.h"
#include "store/key_list.h"

namespace weir::admin {

/// What the admin API works on. Everything must outlive the routers.
struct AdminParts {
  const AdminGuard& guard;
  const Lifecycle& lifecycle;
  policy::Catalog& catalog;
  policy::PolicyStore& policies;
  limiter::Counters& counters;
  std::string store_name;         ///< without secrets
  std::string policy_store_name;  ///< without secrets
  /// Lists the keys that the store holds. `done` runs on the calling reactor's thread, perhaps
  /// immediately.
  std::function<void(store::KeyQuery, std::function<void(Result<store::KeyPage>)> done)> list_keys;
  std::function<std::optional<std::size_t>()> count_keys;
  StoreHealthOf store_health;
  const std::vector<Probe>& probes;
  AuditLog& audit;
  PolicyChanges& changes;
  ConfigChanges& config_changes;
  const limiter::TopKeys& top;
  const LiveTotals& live;
  const limiter::Assignments& assignments;
  store::FindHeld find_held;         ///< null: nothing can be leased
  bool default_for_requests = true;  ///< config::Config::default_for_requests
};

/// Behind the guard, calls `handle(parts, more…, request, reply)`. All must outlive the handler.
template <typename Handle, typename... More>
http::Handler Guarded(const AdminParts& parts, Handle handle, More&... more) {
  return Guarded(parts.guard,
                 [&parts, handle, &more...](const http::Request& request, http::Reply reply) {
                   handle(parts, more..., request, std::move(reply));
                 });
}

/// Adds /admin/status, /admin/metrics, /admin/reset, /admin/policies with their versions,
/// /admin/explain, /admin/audit, /admin/top and /admin/live. A router
/// belongs to one reactor, and `limiter` is that reactor's.
void AddAdmin(http::Router& router, const AdminParts& parts, limiter::PolicyLimiter& limiter);

/// The parts of it, one per file.
void AddAdminPolicies(http::Router& router, const AdminParts& parts);
void AddAdminKeys(http::Router& router, const AdminParts& parts, limiter::PolicyLimiter& limiter);
void AddAdminReset(http::Router& router, const AdminParts& parts, limiter::PolicyLimiter& limiter);
void AddAdminVersions(http::Router& router, const AdminParts& parts);
void AddAdminAudit(http::Router& router, const AdminParts& parts);
void AddAdminLive(http::Router& router, const AdminParts& parts);
void AddAdminExplain(http::Router& router, const AdminParts& parts,
                     limiter::PolicyLimiter& limiter);

/// Wraps `handler` so that an audit log entry is written before each success response to a change
/// (any method but GET and HEAD). For changes that have no undo; the previous state is not logged.
http::Handler Audited(AuditLog& audit, std::string action, http::Handler handler);
/// The same for a handler that knows only later whether it changes anything: the reply to use then.
http::Reply AuditedReply(AuditLog& audit, const std::string& action, const http::Request& request,
                         http::Reply reply);

/// A version in a query or path; kInvalidArgument names the field.
Result<std::int64_t> VersionNumber(std::string_view field, std::string_view text);

/// Answers a change of a policy: with the policy, or 204 if it was deleted.
PolicyChanges::Done AnswerChange(int status, http::Reply reply,
                                 std::vector<std::string> warnings = {});

/// Reads ?limit= (1 to 1000, 100 if absent), ?cursor= and the other parameters of `names`; an error
/// if one is invalid, or is none of them.
struct PageQuery {
  std::size_t limit = 100;
  std::string cursor = {};
  http::Query parameters = {};
};
Result<PageQuery> ReadPage(std::string_view query, http::Query::Names names);

/// A handler that takes no parameters in the query: answers 400 if there are any.
http::Handler WithoutQuery(http::Handler handler);

/// Sets X-Next-Cursor to where the next page begins, in a form that ReadPage accepts: a cursor
/// may contain any bytes, since keys do. Does nothing if it is empty.
void GiveNextPage(http::Response& response, std::string_view cursor);

}  // namespace weir::admin
