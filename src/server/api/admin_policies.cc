#include <string>
#include <utility>

#include "policy/policy_set.h"
#include "protocol/http/error.h"
#include "protocol/http/policy_body.h"
#include "protocol/http/uri.h"
#include "server/api/admin.h"
#include "telemetry/log.h"

namespace weir::server {
namespace {

http::Response Json(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

/// Logs a change and answers it once it is on disk and in force.
policy::PolicyStore::Done Answer(std::string_view what, int status, const http::Request& request,
                                 http::Reply reply) {
  return [what, status, who = std::string(request.remote), id = std::string(request.request_id),
          reply = std::move(reply)](const Result<policy::StoredPolicy>& result) {
    if (!result.ok()) return reply(http::ErrorResponse(result.error()));
    telemetry::Log(telemetry::Level::kInfo, what,
                   {{"policy", std::string_view(result->key)},
                    {"who", std::string_view(who)},
                    {"request_id", std::string_view(id)}});
    reply(Json(status, status == 204 ? std::string() : policy::ToJson(*result)));
  };
}

void AppendFilePolicy(std::string& out, const policy::Policy& policy) {
  const policy::Definition& definition = policy.definition;
  out += "{\"policyKey\":";
  http::AppendJsonString(out, definition.name);
  out += ",\"domain\":";
  http::AppendJsonString(out, definition.domain);
  out += ",\"quota\":";
  http::AppendJsonString(out, definition.quota ? definition.quota->ToString() : "unlimited");
  out += ",\"match\":{";
  for (std::size_t i = 0; i < definition.match.size(); ++i) {
    if (i != 0) out += ',';
    http::AppendJsonString(out, definition.match[i].name);
    out += ':';
    http::AppendJsonString(out, policy::MatchText(definition.match[i]));
  }
  out += definition.shadow ? "},\"shadow\":true" : "},\"shadow\":false";
  out += ",\"source\":";
  http::AppendJsonString(out, definition.source);
  out += '}';
}

/// Everything in force, as far as it is not of the admin API. The cursor is a number.
http::Response ListFiles(const AdminParts& parts, const PageQuery& page) {
  const auto set = parts.catalog.live().Current();
  std::size_t index = 0;
  for (const char c : page.cursor) {
    if (c < '0' || c > '9' || index > policy::kMaxPolicies) {
      return http::ErrorResponse(400, "cursor: give the X-Next-Cursor of an earlier answer");
    }
    index = index * 10 + static_cast<std::size_t>(c - '0');
  }
  http::Response response = Json(200, "[");
  std::size_t given = 0;
  const auto& policies = set->policies();
  for (; index < policies.size() && given < page.limit; ++index) {
    if (policies[index].definition.source == "admin API") continue;
    if (given++ != 0) response.body += ',';
    AppendFilePolicy(response.body, policies[index]);
  }
  response.body += ']';
  if (index < policies.size())
    response.headers.emplace_back("X-Next-Cursor", std::to_string(index));
  return response;
}

http::Response List(const AdminParts& parts, const http::Request& request) {
  const auto page = ReadPage(request.query);
  if (!page.ok()) return http::ErrorResponse(page.error());
  if (http::QueryValue(request.query, "source") == "files") return ListFiles(parts, *page);
  const policy::PolicyStore::Page found = parts.policies.List(page->cursor, page->limit);
  http::Response response = Json(200, "[");
  for (std::size_t i = 0; i < found.policies.size(); ++i) {
    if (i != 0) response.body += ',';
    response.body += policy::ToJson(found.policies[i]);
  }
  response.body += ']';
  response.headers.emplace_back("X-Total-Count", std::to_string(found.total));
  if (!found.next.empty()) response.headers.emplace_back("X-Next-Cursor", found.next);
  return response;
}

}  // namespace

void AddAdminPolicies(Router& router, const AdminParts& parts) {
  const auto add = [&](std::string_view method, std::string_view path, http::Handler handler) {
    router.Add(method, path, Guarded(parts.guard, std::move(handler)));
  };
  add("GET", "/admin/policies", [&parts](const http::Request& request, const http::Reply& reply) {
    reply(List(parts, request));
  });
  add("GET", "/admin/policies/{key}",
      [&parts](const http::Request& request, const http::Reply& reply) {
        const auto policy = parts.policies.Get(request.params[0]);
        reply(policy.ok() ? Json(200, policy::ToJson(*policy))
                          : http::ErrorResponse(policy.error()));
      });
  add("POST", "/admin/policies", [&parts](const http::Request& request, http::Reply reply) {
    auto policy = http::ReadPolicy(request.body);
    if (!policy.ok()) return reply(http::ErrorResponse(policy.error()));
    parts.policies.Create(std::move(*policy), std::string(request.remote),
                          Answer("policy created", 201, request, std::move(reply)));
  });
  add("PUT", "/admin/policies/{key}", [&parts](const http::Request& request, http::Reply reply) {
    auto policy = http::ReadPolicy(request.body);
    if (!policy.ok()) return reply(http::ErrorResponse(policy.error()));
    if (!policy->key.empty() && policy->key != request.params[0]) {
      return reply(http::ErrorResponse(400, "key: differs from the key in the path"));
    }
    policy->key = request.params[0];
    parts.policies.Update(std::move(*policy), std::string(request.remote),
                          Answer("policy updated", 200, request, std::move(reply)));
  });
  add("DELETE", "/admin/policies/{key}", [&parts](const http::Request& request, http::Reply reply) {
    parts.policies.Delete(request.params[0], std::string(request.remote),
                          Answer("policy deleted", 204, request, std::move(reply)));
  });
}

}  // namespace weir::server
