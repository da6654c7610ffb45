// A policy's history: GET /admin/policies/{key}/versions[/{version}], GET …/diff, POST …/rollback.

#include <string>
#include <utility>
#include <vector>

#include "admin/admin.h"
#include "admin/file_changes.h"
#include "admin/json_diff.h"
#include "admin/return_body.h"
#include "base/instant.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "protocol/http/error.h"
#include "protocol/http/query.h"

namespace weir::admin {
namespace {

using policy::PolicyChange;

/// A deletion has the number of the version that it deleted, which is no longer in force.
void AppendVersion(JsonWriter& json, const PolicyChange& change) {
  const bool gone = change.after.empty();
  json.BeginObject()
      .Field("version", policy::VersionIn(gone ? change.before : change.after))
      .Field("at", FormatInstant(change.at))
      .Field("who", change.who)
      .Field("action", change.action)
      .RawField("policy", gone ? "null" : change.after)
      .EndObject();
}

using History = Result<std::vector<PolicyChange>>;

http::Response NoHistory(bool in_force) {
  return http::ErrorResponse(
      404, in_force ? "the history of this policy is lost: its database no longer has it, though "
                      "the policy is in force; the next change starts a new one"
                    : "no policy with this key was made through the admin API, or its database has "
                      "lost the history");
}

/// How to list the changes of the policies of files with this name: those of their overrides. Empty
/// if none has one.
std::string HistoryOfOverrides(const policy::Catalog& catalog, const policy::PolicyStore& policies,
                               std::string_view name) {
  const auto set = catalog.live().Current();
  std::string commands;
  for (const policy::Policy& policy : set->policies()) {
    const policy::Definition& definition = policy.definition;
    if (definition.source == kAdminSource || definition.name != name) continue;
    const std::string key = policy::OverrideKey(definition);
    if (!policies.Get(key).ok()) continue;
    commands +=
        (commands.empty() ? "under " : ", and under ") + key + ": weir policy history " + key;
  }
  return commands;
}

http::Response VersionsOf(const policy::Catalog& catalog, const policy::PolicyStore& policies,
                          const std::string& key, const History& history) {
  if (!history.ok()) return http::ErrorResponse(history.error());
  if (history->empty()) {
    const std::string where = HistoryOfOverrides(catalog, policies, key);
    if (where.empty()) return NoHistory(policies.Get(key).ok());
    return http::ErrorResponse(404, "this policy is in a file; its changes are " + where);
  }
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("policyKey", key).Key("versions").BeginArray();
  for (const PolicyChange& change : *history) AppendVersion(json, change);
  json.EndArray().EndObject();
  return response;
}

http::Response VersionOf(std::int64_t version, const History& history) {
  if (!history.ok()) return http::ErrorResponse(history.error());
  for (const PolicyChange& change : *history) {
    if (policy::VersionIn(change.after) != version) continue;
    http::Response response;
    JsonWriter json(response.body);
    AppendVersion(json, change);
    return response;
  }
  return http::ErrorResponse(
      404, "this policy has no version " + std::to_string(version) + " in its history");
}

void Versions(const AdminParts& parts, const http::Request& request, const http::Reply& reply) {
  const auto page = ReadPage(request.query, {"limit"});
  if (!page.ok()) return reply(http::ErrorResponse(page.error()));
  const std::string& key = request.params[0];
  parts.policies.History(
      key, page->limit,
      [&catalog = parts.catalog, &policies = parts.policies, reply, key](const History& history) {
        reply(VersionsOf(catalog, policies, key, history));
      });
}

void Version(const AdminParts& parts, const http::Request& request, const http::Reply& reply) {
  const auto version = VersionNumber("version", request.params[1]);
  if (!version.ok()) return reply(http::ErrorResponse(version.error()));
  parts.policies.History(
      request.params[0], policy::kMaxPage,
      [reply, version = *version](const History& history) { reply(VersionOf(version, history)); });
}

/// One side of a comparison; without a version, the policy is not in force.
struct Side {
  std::int64_t version = 0;
  std::string policy = {};
};

Result<Side> SideOf(std::int64_t version, const std::vector<PolicyChange>& history) {
  for (const PolicyChange& change : history) {
    if (policy::VersionIn(change.after) == version) return Side{version, change.after};
  }
  return Error{Code::kNotFound,
               "this policy has no version " + std::to_string(version) + " in its history"};
}

void AppendSide(JsonWriter& json, std::string_view name, const Side& side) {
  json.Key(name);
  if (side.version == 0) {
    json.Null();
  } else {
    json.Value(side.version);
  }
}

http::Response DiffOf(const std::string& key, const Side& from, const Side& to) {
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("policyKey", key);
  AppendSide(json, "from", from);
  AppendSide(json, "to", to);
  json.Key("changes").BeginArray();
  for (const FieldDifference& difference : Differences(from.policy, to.policy)) {
    json.BeginObject()
        .Field("field", difference.field)
        .RawField("before", difference.before.empty() ? "null" : difference.before)
        .RawField("after", difference.after.empty() ? "null" : difference.after)
        .EndObject();
  }
  json.EndArray().EndObject();
  return response;
}

/// ?from=1&to=2; without `to`, compares with what is in force.
void Diff(const AdminParts& parts, const http::Request& request, const http::Reply& reply) {
  const auto query = http::Query::Read(request.query, {"from", "to"});
  if (!query.ok()) return reply(http::ErrorResponse(query.error()));
  const auto from = VersionNumber("from", query->Find("from").value_or(""));
  if (!from.ok()) return reply(http::ErrorResponse(from.error()));
  const std::string key = request.params[0];
  Side now;
  std::int64_t wanted = 0;  // 0: the one in force
  if (const auto to = query->Find("to")) {
    const auto version = VersionNumber("to", *to);
    if (!version.ok()) return reply(http::ErrorResponse(version.error()));
    wanted = *version;
  } else if (const auto policy = parts.policies.Get(key); policy.ok()) {
    now = {policy->version, policy::ToJson(*policy)};
  }
  parts.policies.History(
      key, policy::kMaxPage, [reply, key, from = *from, wanted, now](const History& history) {
        if (!history.ok()) return reply(http::ErrorResponse(history.error()));
        const Result<Side> before = SideOf(from, *history);
        if (!before.ok()) return reply(http::ErrorResponse(before.error()));
        const Result<Side> after = wanted == 0 ? Result<Side>(now) : SideOf(wanted, *history);
        if (!after.ok()) return reply(http::ErrorResponse(after.error()));
        reply(DiffOf(key, *before, *after));
      });
}

}  // namespace

Result<std::int64_t> VersionNumber(std::string_view field, std::string_view text) {
  const auto version = ParseNumber<std::int64_t>(text);
  if (version && *version >= 1) return *version;
  return Error{Code::kInvalidArgument, std::string(field) + ": must be a whole number from 1"};
}

void AddAdminVersions(http::Router& router, const AdminParts& parts) {
  router.Add("GET", "/admin/policies/{key}/versions", Guarded(parts, Versions));
  router.Add("GET", "/admin/policies/{key}/versions/{version}",
             Guarded(parts.guard,
                     WithoutQuery([&parts](const http::Request& request, const http::Reply& reply) {
                       Version(parts, request, reply);
                     })));
  router.Add("GET", "/admin/policies/{key}/diff", Guarded(parts, Diff));
  router.Add(
      "POST", "/admin/policies/{key}/rollback",
      Guarded(parts.guard, WithoutQuery([&parts](const http::Request& request, http::Reply reply) {
                const auto wanted = ReadRollback(request.body);
                if (!wanted.ok()) return reply(http::ErrorResponse(wanted.error()));
                parts.changes.RollBack(request.params[0], wanted->version, wanted->end,
                                       WhoAsks(request), AnswerChange(200, std::move(reply)));
              })));
}

}  // namespace weir::admin
