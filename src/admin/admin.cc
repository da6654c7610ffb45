#include "admin/admin.h"

#include <charconv>
#include <chrono>
#include <utility>

#include "base/base64url.h"
#include "base/json_text.h"
#include "protocol/http/error.h"
#include "protocol/http/uri.h"
#include "telemetry/version.h"

namespace weir::admin {
namespace {

constexpr std::size_t kMaxPage = 1000;

void AppendLeases(std::string& body, const LeaseTotals& leases) {
  const auto number = [&body](std::string_view name, std::uint64_t value) {
    body.append(name).append(std::to_string(value));
  };
  number(",\"leases\":{\"keys\":", leases.keys);
  number(",\"permitsHeld\":", static_cast<std::uint64_t>(std::max<std::int64_t>(leases.held, 0)));
  number(",\"localChecks\":", leases.local);
  number(",\"calls\":", leases.calls);
  number(",\"callsSaved\":", leases.local - std::min(leases.local, leases.calls));
  const double lost = leases.granted == 0
                          ? 0
                          : static_cast<double>(leases.lost) / static_cast<double>(leases.granted);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4f", lost);
  body.append(",\"underAdmission\":").append(text.data()).append("}");
}

void AppendStoreHealth(std::string& body, const StoreHealth& health) {
  body += health.up ? ",\"storeHealth\":{\"up\":true" : ",\"storeHealth\":{\"up\":false";
  body += ",\"breaker\":";
  AppendJsonString(body, health.breaker);
  body += health.channel_up ? ",\"channelUp\":true" : ",\"channelUp\":false";
  body += ",\"lastError\":";
  AppendJsonString(body, health.last_error);
  if (health.leases) AppendLeases(body, *health.leases);
  body += '}';
}

void AppendPolicyStore(std::string& body, const AdminParts& parts) {
  body += ",\"policyStore\":";
  AppendJsonString(body, parts.policy_store_name);
  if (parts.policy_store_name == "sqlite:") return;
  const policy::PolicyHealth health = parts.policies.health();
  body +=
      health.up ? ",\"policyStoreHealth\":{\"up\":true" : ",\"policyStoreHealth\":{\"up\":false";
  body += health.known ? ",\"known\":true" : ",\"known\":false";
  body.append(",\"change\":").append(std::to_string(health.change)).append(",\"lastError\":");
  AppendJsonString(body, health.last_error);
  body += '}';
}

http::Response Status(const AdminParts& parts, std::chrono::steady_clock::time_point started) {
  const policy::Catalog::Status catalog = parts.catalog.status();
  const limiter::CheckCounts checks = parts.counters.Checks();
  const auto uptime = std::chrono::steady_clock::now() - started;
  http::Response response;
  std::string& body = response.body;
  const auto number = [&body](std::string_view name, std::uint64_t value) {
    body.append(",\"").append(name).append("\":").append(std::to_string(value));
  };
  body = parts.lifecycle.ready() ? R"({"status":"UP")" : R"({"status":"DRAINING")";
  body += ",\"version\":";
  AppendJsonString(body, telemetry::kVersion);
  number("uptimeSeconds", static_cast<std::uint64_t>(
                              std::chrono::duration_cast<std::chrono::seconds>(uptime).count()));
  body += ",\"store\":";
  AppendJsonString(body, parts.store_name);
  if (const auto health = parts.store_health()) AppendStoreHealth(body, *health);
  AppendPolicyStore(body, parts);
  number("keys", parts.count_keys().value_or(0));
  number("allowed", checks.allowed);
  number("blocked", checks.limited);
  number("errors", checks.errors);
  number("degraded", checks.degraded);
  number("filePolicies", catalog.file_policies);
  number("storedPolicies", catalog.stored_policies);
  number("reloads", catalog.reloads);
  number("failedReloads", catalog.failed_reloads);
  const auto texts = [&body](std::string_view name, const auto& items, const auto& text_of) {
    body += ",\"";
    body += name;
    body += "\":[";
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i != 0) body += ',';
      AppendJsonString(body, text_of(items[i]));
    }
    body += ']';
  };
  texts("reloadProblems", catalog.problems, [](const auto& problem) { return problem.ToString(); });
  texts("setAside", catalog.set_aside, [](const std::string& name) { return name; });
  body += '}';
  return response;
}

}  // namespace

Result<PageQuery> ReadPage(std::string_view query) {
  PageQuery page;
  http::QueryReader reader(query);
  while (const auto pair = reader.Next()) {
    const auto value = http::DecodeQuery(pair->value);
    if (!value) return Error{Code::kInvalidArgument, "query: bad percent-encoding"};
    if (pair->key == "cursor") {
      auto cursor = Base64UrlDecoded(*value);
      if (!cursor) {
        return Error{Code::kInvalidArgument, "cursor: give the X-Next-Cursor of an earlier answer"};
      }
      page.cursor = std::move(*cursor);
    }
    if (pair->key != "limit") continue;
    const auto [end, failed] =
        std::from_chars(value->data(), value->data() + value->size(), page.limit);
    if (failed != std::errc() || end != value->data() + value->size() || page.limit < 1 ||
        page.limit > kMaxPage) {
      return Error{Code::kInvalidArgument, "limit: must be an integer from 1 to 1000"};
    }
  }
  return page;
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
