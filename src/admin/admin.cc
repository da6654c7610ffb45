#include "admin/admin.h"

#include <chrono>
#include <utility>

#include "base/base64url.h"
#include "base/instant.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "protocol/http/error.h"
#include "telemetry/version.h"

namespace weir::admin {
namespace {

constexpr std::size_t kMaxPage = 1000;

void AppendLeases(JsonWriter& json, const LeaseTotals& leases) {
  const double lost = leases.granted == 0
                          ? 0
                          : static_cast<double>(leases.lost) / static_cast<double>(leases.granted);
  std::array<char, 32> share{};
  std::snprintf(share.data(), share.size(), "%.4f", lost);
  json.Key("leases")
      .BeginObject()
      .Field("keys", leases.keys)
      .Field("permitsHeld", std::max<std::int64_t>(leases.held, 0))
      .Field("localChecks", leases.local)
      .Field("calls", leases.calls)
      .Field("callsSaved", leases.local - std::min(leases.local, leases.calls))
      .RawField("underAdmission", share.data())
      .EndObject();
}

void AppendStoreHealth(JsonWriter& json, const StoreHealth& health) {
  json.Key("storeHealth")
      .BeginObject()
      .Field("up", health.up)
      .Field("breaker", health.breaker)
      .Field("channelUp", health.channel_up)
      .Field("lastError", health.up ? "" : health.last_error);
  if (health.times_lost > 0) {
    json.Field("timesLostData", health.times_lost)
        .Field("lostDataAt", FormatInstant(health.lost_at));
  }
  if (health.leases) AppendLeases(json, *health.leases);
  json.EndObject();
}

void AppendPolicyStore(JsonWriter& json, const AdminParts& parts) {
  json.Field("policyStore", parts.policy_store_name);
  if (parts.policy_store_name == "sqlite:") return;
  const policy::PolicyHealth health = parts.policies.health();
  json.Key("policyStoreHealth")
      .BeginObject()
      .Field("up", health.up)
      .Field("known", health.known)
      .Field("change", health.change)
      .Field("lastError", health.up ? "" : health.last_error)
      .EndObject();
}

void AppendCatalog(JsonWriter& json, const policy::Catalog::Status& catalog) {
  json.Field("filePolicies", catalog.file_policies)
      .Field("storedPolicies", catalog.stored_policies)
      .Field("reloads", catalog.reloads)
      .Field("failedReloads", catalog.failed_reloads);
  json.Key("reloadProblems").BeginArray();
  for (const auto& problem : catalog.problems) json.Value(problem.ToString());
  json.EndArray().Key("setAside").BeginArray();
  for (const std::string& name : catalog.set_aside) json.Value(name);
  json.EndArray().Key("cannotApply").BeginArray();
  for (const std::string& why : catalog.unable) json.Value(why);
  json.EndArray();
}

void AppendCondition(JsonWriter& json, const AdminParts& parts,
                     const std::optional<StoreHealth>& store) {
  // A file of policies on this node cannot be down.
  const bool policies_up = parts.policy_store_name == "sqlite:" || parts.policies.health().up;
  const std::vector<std::string> down = WhatIsDown(store, policies_up, parts.probes);
  const char* const working = down.empty() ? "UP" : "DEGRADED";
  json.Field("status", parts.lifecycle.ready() ? working : "DRAINING")
      .Field("version", telemetry::kVersion)
      .Key("down")
      .BeginArray();
  for (const std::string& part : down) json.Value(part);
  json.EndArray();
}

http::Response Status(const AdminParts& parts, std::chrono::steady_clock::time_point started) {
  const limiter::CheckCounts checks = parts.counters.Checks();
  const auto uptime = std::chrono::steady_clock::now() - started;
  http::Response response;
  JsonWriter json(response.body);
  const std::optional<StoreHealth> health = parts.store_health();
  json.BeginObject();
  AppendCondition(json, parts, health);
  json.Field("uptimeSeconds", std::chrono::duration_cast<std::chrono::seconds>(uptime).count())
      .Field("store", parts.store_name);
  if (health) AppendStoreHealth(json, *health);
  AppendPolicyStore(json, parts);
  if (const std::optional<std::size_t> keys = parts.count_keys()) json.Field("keys", *keys);
  json.Field("allowed", checks.allowed)
      .Field("blocked", checks.limited)
      .Field("errors", checks.errors)
      .Field("degraded", checks.degraded)
      .Field("unmatched", checks.unmatched);
  AppendCatalog(json, parts.catalog.status());
  json.EndObject();
  return response;
}

}  // namespace

Result<PageQuery> ReadPage(std::string_view query, http::Query::Names names) {
  Result<http::Query> read = http::Query::Read(query, names);
  if (!read.ok()) return read.error();
  PageQuery page{.parameters = std::move(*read)};
  if (const auto text = page.parameters.Find("limit")) {
    const auto limit = ParseNumber<std::size_t>(*text, 1, kMaxPage);
    if (!limit) return Error{Code::kInvalidArgument, "limit: must be an integer from 1 to 1000"};
    page.limit = *limit;
  }
  auto cursor = Base64UrlDecoded(page.parameters.Find("cursor").value_or(""));
  if (!cursor) {
    return Error{Code::kInvalidArgument,
                 "cursor: must be the X-Next-Cursor of an earlier response"};
  }
  page.cursor = std::move(*cursor);
  return page;
}

http::Handler WithoutQuery(http::Handler handler) {
  return [handler = std::move(handler)](const http::Request& request, http::Reply reply) {
    const auto query = http::Query::Read(request.query, {});
    if (!query.ok()) return reply(http::ErrorResponse(query.error()));
    handler(request, std::move(reply));
  };
}

void GiveNextPage(http::Response& response, std::string_view cursor) {
  if (cursor.empty()) return;
  response.headers.emplace_back("X-Next-Cursor", Base64UrlEncoded(cursor));
}

void AddAdmin(http::Router& router, const AdminParts& parts, limiter::PolicyLimiter& limiter) {
  const auto started = std::chrono::steady_clock::now();
  router.Add(
      "GET", "/admin/status",
      Guarded(parts.guard, [&parts, started](const http::Request&, const http::Reply& reply) {
        reply(Status(parts, started));
      }));
  AddAdminPolicies(router, parts);
  AddAdminKeys(router, parts, limiter);
  AddAdminReset(router, parts, limiter);
  AddAdminExplain(router, parts, limiter);
  AddAdminVersions(router, parts);
  AddAdminAudit(router, parts);
  AddAdminLive(router, parts);
}

}  // namespace weir::admin
