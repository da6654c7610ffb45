// What a policy was: GET /admin/policies/{key}/versions[/{version}], POST …/rollback.

#include <simdjson.h>

#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "base/instant.h"
#include "protocol/http/error.h"
#include "server/api/admin.h"

namespace weir::server {
namespace {

using policy::PolicyChange;

void AppendVersion(std::string& out, const PolicyChange& change) {
  const bool gone = change.after.empty();
  out.append("{\"version\":");
  out.append(std::to_string(policy::VersionIn(gone ? change.before : change.after)));
  out.append(",\"at\":\"").append(FormatInstant(change.at)).append("\",\"who\":");
  http::AppendJsonString(out, change.who);
  out += ",\"action\":";
  http::AppendJsonString(out, change.action);
  out.append(",\"policy\":").append(gone ? "null" : change.after).append("}");
}

using History = Result<std::vector<PolicyChange>>;

http::Response VersionsOf(const std::string& key, const History& history) {
  if (!history.ok()) return http::ErrorResponse(history.error());
  if (history->empty()) return http::ErrorResponse(404, "no policy ever had this key");
  http::Response response;
  response.body = "{\"policyKey\":";
  http::AppendJsonString(response.body, key);
  response.body += ",\"versions\":[";
  for (std::size_t i = 0; i < history->size(); ++i) {
    if (i != 0) response.body += ',';
    AppendVersion(response.body, (*history)[i]);
  }
  response.body += "]}";
  return response;
}

http::Response VersionOf(std::int64_t version, const History& history) {
  if (!history.ok()) return http::ErrorResponse(history.error());
  for (const PolicyChange& change : *history) {
    if (policy::VersionIn(change.after) != version) continue;
    http::Response response;
    AppendVersion(response.body, change);
    return response;
  }
  return http::ErrorResponse(
      404, "this policy has no version " + std::to_string(version) + " in its history");
}

void Versions(const AdminParts& parts, const http::Request& request, const http::Reply& reply) {
  const auto page = ReadPage(request.query);
  if (!page.ok()) return reply(http::ErrorResponse(page.error()));
  parts.policies.History(request.params[0], page->limit,
                         [reply, key = request.params[0]](const History& history) {
                           reply(VersionsOf(key, history));
                         });
}

void Version(const AdminParts& parts, const http::Request& request, const http::Reply& reply) {
  constexpr std::size_t kAll = 1000;
  const std::string& text = request.params[1];
  std::int64_t version = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (failed != std::errc() || end != text.data() + text.size() || version < 1) {
    return reply(http::ErrorResponse(400, "version: must be a number from 1 on"));
  }
  parts.policies.History(request.params[0], kAll, [reply, version](const History& history) {
    reply(VersionOf(version, history));
  });
}

Result<std::int64_t> WantedVersion(std::string_view body) {
  simdjson::dom::parser parser;
  std::int64_t version = 0;
  if (parser.parse(body.data(), body.size())["version"].get(version) != simdjson::SUCCESS ||
      version < 1) {
    return Error{Code::kInvalidArgument, "version: must be a number from 1 on"};
  }
  return version;
}

}  // namespace

void AddAdminVersions(Router& router, const AdminParts& parts) {
  router.Add("GET", "/admin/policies/{key}/versions",
             Guarded(parts.guard, [&parts](const http::Request& request, const http::Reply& reply) {
               Versions(parts, request, reply);
             }));
  router.Add("GET", "/admin/policies/{key}/versions/{version}",
             Guarded(parts.guard, [&parts](const http::Request& request, const http::Reply& reply) {
               Version(parts, request, reply);
             }));
  router.Add("POST", "/admin/policies/{key}/rollback",
             Guarded(parts.guard, [&parts](const http::Request& request, http::Reply reply) {
               const auto version = WantedVersion(request.body);
               if (!version.ok()) return reply(http::ErrorResponse(version.error()));
               parts.changes.RollBack(request.params[0], *version, WhoAsks(request),
                                      AnswerChange(200, std::move(reply)));
             }));
}

}  // namespace weir::server
