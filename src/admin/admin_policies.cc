#include <optional>
#include <string>
#include <utility>

#include "admin/admin.h"
#include "admin/file_changes.h"
#include "admin/policy_body.h"
#include "algorithm/algorithms.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "policy/policy_set.h"
#include "protocol/http/error.h"
#include "protocol/http/query.h"

namespace weir::admin {
namespace {

/// A policy of a file, its location, and the override that decides its shadow, if there is one.
void AppendWithPlace(JsonWriter& json, const policy::Definition& definition,
                     const policy::PolicyStore& stored) {
  json.BeginObject();
  AppendFilePolicy(json, definition, "file");
  json.Field("definedIn", definition.source);
  if (definition.shadow_in_file) {
    json.Field("shadowInFile", *definition.shadow_in_file);
    const auto over = stored.Get(policy::OverrideKey(definition));
    if (over.ok()) json.RawField("override", policy::ToJson(*over));
  }
  json.EndObject();
}

/// A stored policy, and where it comes from.
void AppendWithSource(JsonWriter& json, const policy::StoredPolicy& policy) {
  json.BeginObject();
  policy::AppendPolicy(json, policy);
  json.Field("source", "admin").EndObject();
}

/// The policy for keys that no other policy names; it cannot be changed here.
void AppendDefault(JsonWriter& json, const policy::PolicySet& set) {
  const policy::Definition& definition = set.default_policy().definition;
  json.BeginObject();
  AppendFilePolicy(json, definition, "default");
  json.Field("definedIn", definition.source).EndObject();
}

/// One policy by the name shown in the list: of the admin API, else of a file (as its name, or as
/// domain/name), else the default.
http::Response Find(const AdminParts& parts, const std::string& key) {
  const auto stored = parts.policies.Get(key);
  http::Response response;
  JsonWriter json(response.body);
  if (stored.ok()) {
    response.body = policy::ToJson(*stored);
    return response;
  }
  const auto set = parts.catalog.live().Current();
  for (const policy::Policy& policy : set->policies()) {
    const policy::Definition& definition = policy.definition;
    if (definition.source == kAdminSource) continue;
    // Compares names first: with many policies, building the text of each would delay the reactor.
    if (!key.ends_with(definition.name)) continue;
    if (definition.name != key && policy::OverrideKey(definition) != key) continue;
    AppendWithPlace(json, definition, parts.policies);
    return response;
  }
  if (key != set->default_policy().definition.name) return http::ErrorResponse(stored.error());
  AppendDefault(json, *set);
  return response;
}

/// Where a list continues: among the policies of the admin API, after a key, or among those of
/// files, at an index. As text `a…` or `f…`.
struct Place {
  bool files = false;
  std::string after = {};
  std::size_t index = 0;
};

std::optional<Place> ReadPlace(std::string_view cursor) {
  if (cursor.empty()) return Place{};
  const char part = cursor.front();
  cursor.remove_prefix(1);
  if (part == 'a') return Place{.after = std::string(cursor)};
  Place place{.files = true};
  const auto index = ParseNumber<std::size_t>(cursor);
  if (part != 'f' || !index) return std::nullopt;
  place.index = *index;
  return place;
}

/// Adds policies of files from `index` on until `room` more have been added; returns where to
/// continue, if there are more.
std::optional<std::size_t> AddFilePolicies(const policy::PolicySet& set,
                                           const policy::PolicyStore& stored, std::size_t index,
                                           std::size_t room, JsonWriter& list) {
  const auto& policies = set.policies();
  for (; index < policies.size(); ++index) {
    if (policies[index].definition.source == kAdminSource) continue;
    if (room-- == 0) return index;
    AppendWithPlace(list, policies[index].definition, stored);
  }
  return std::nullopt;
}

http::Response ListOf(const AdminParts& parts, const http::Request& request) {
  const auto page = ReadPage(request.query, {"limit", "cursor", "source"});
  if (!page.ok()) return http::ErrorResponse(page.error());
  auto place = ReadPlace(page->cursor);
  if (!place) {
    return http::ErrorResponse(400, "cursor: must be the X-Next-Cursor of an earlier response");
  }
  const std::string source = page->parameters.Find("source").value_or("");
  if (!source.empty() && source != "admin" && source != "file" && source != "files" &&
      source != "default") {
    return http::ErrorResponse(400, "source: must be admin, file or default");
  }
  http::Response response;
  JsonWriter list(response.body);
  list.BeginArray();
  if (source == "default") {
    AppendDefault(list, *parts.catalog.live().Current());
    list.EndArray();
    return response;
  }
  std::size_t room = page->limit;
  std::string next;
  std::size_t total = 0;
  if (source != "files" && source != "file") {
    const bool wanted = !place->files;
    policy::PolicyStore::Page found = parts.policies.List(place->after, wanted ? room : 1);
    total += found.total;
    if (wanted) {
      for (const auto& policy : found.policies) AppendWithSource(list, policy);
      room -= found.policies.size();
      if (!found.next.empty()) next = 'a' + found.next;
    }
  }
  if (source != "admin") {
    total += parts.catalog.status().file_policies;
    if (next.empty()) {
      const auto set = parts.catalog.live().Current();
      const auto more = AddFilePolicies(*set, parts.policies, place->index, room, list);
      if (more) next = 'f' + std::to_string(*more);
    }
  }
  list.EndArray();
  response.headers.emplace_back("X-Total-Count", std::to_string(total));
  GiveNextPage(response, next);
  return response;
}

void List(const AdminParts& parts, const http::Request& request, const http::Reply& reply) {
  reply(ListOf(parts, request));
}

/// The values of a policy's `type`, and the numbers that each takes, for the dashboard's form.
http::Response Algorithms() {
  http::Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const algorithm::Descriptor& each : algorithm::kAlgorithms) {
    json.BeginObject()
        .Field("type", each.type)
        .Field("name", each.name)
        .Field("title", each.title)
        .Key("fields")
        .BeginArray()
        .Value("capacity")
        .Value(each.refills() ? "refillRate" : "windowSeconds");
    if (each.has_buckets) json.Value("buckets");
    json.EndArray().Field("leases", each.leases).EndObject();
  }
  json.EndArray();
  return response;
}

/// ?version=3: a change is made only if this is the version in force, so that a caller does not
/// overwrite a later change. 0: any version.
Result<std::int64_t> ExpectedVersion(const http::Request& request) {
  const Result<http::Query> query = http::Query::Read(request.query, {"version"});
  if (!query.ok()) return query.error();
  const auto text = query->Find("version");
  return text ? VersionNumber("version", *text) : std::int64_t{0};
}

/// A policy without a domain gets that of requests without one. Warns if a policy of another domain
/// changes what applies to these requests.
void SettleDomain(const policy::PolicySet& set, http::PolicyBody& body) {
  if (!body.policy.has_match) return;
  const std::string& implied = set.implied_domain();
  if (!body.names_domain) body.policy.domain = implied;
  const std::string next = set.ImpliedWith(body.policy.domain);
  if (next == implied || !set.HasDomain(implied)) return;
  body.warnings.push_back("requests that name no domain belonged to '" + implied +
                          "' and belong to '" + next + "' from now on, so policies of '" + implied +
                          "' no longer apply to them");
}

/// The default policy has a name, and that is a key like any other.
void WarnOfDefaultName(const policy::PolicySet& set, http::PolicyBody& body) {
  const policy::StoredPolicy& policy = body.policy;
  if (policy.key != set.default_policy().definition.name || policy.has_match) return;
  if (policy.type.is_override()) return;
  body.warnings.push_back("this limits the bare key '" + policy.key +
                          "' only; for keys without a policy of their own, set default_policy in "
                          "the configuration");
}

/// The name alone does not tell this policy from one that a file has in another domain.
void WarnOfFileName(const policy::PolicySet& set, http::PolicyBody& body) {
  if (body.policy.type.is_override()) return;
  for (const policy::Policy& policy : set.policies()) {
    const policy::Definition& definition = policy.definition;
    if (definition.source == kAdminSource || definition.name != body.policy.key) continue;
    body.warnings.push_back("a file's policy in domain '" + definition.domain +
                            "' has this name, too: this change is not about that one (" +
                            definition.source + ")");
  }
}

/// What the service adds to a policy that was sent.
void Complete(const AdminParts& parts, http::PolicyBody& body) {
  const auto set = parts.catalog.live().Current();
  SettleDomain(*set, body);
  WarnOfDefaultName(*set, body);
  WarnOfFileName(*set, body);
}

/// The usage of keys is kept separately for each algorithm.
void WarnOfAnotherType(const AdminParts& parts, http::PolicyBody& body) {
  const Result<policy::StoredPolicy> now = parts.policies.Get(body.policy.key);
  if (!now.ok() || now->type == body.policy.type) return;
  body.warnings.push_back("the type changes from " + std::string(PolicyTypeName(now->type)) +
                          " to " + std::string(PolicyTypeName(body.policy.type)) +
                          ", so keys start with a full quota");
}

/// Reads a policy that is to be in force from now on.
Result<http::PolicyBody> ReadNew(const http::Request& request) {
  Result<http::PolicyBody> body = http::ReadPolicyBody(request.body);
  if (!body.ok()) return body;
  if (weir::Status ends = CheckEnd(body->policy.expires_at); !ends.ok()) return ends.error();
  return body;
}

/// Reads a policy for the key in the path, with what should be known about it.
Result<http::PolicyBody> ReadFor(const AdminParts& parts, const http::Request& request) {
  Result<http::PolicyBody> body = ReadNew(request);
  if (!body.ok()) return body;
  std::string& key = body->policy.key;
  if (!key.empty() && key != request.params[0]) {
    return Error{Code::kInvalidArgument, "key: does not match the key in the path"};
  }
  key = request.params[0];
  Complete(parts, *body);
  WarnOfAnotherType(parts, *body);
  return body;
}

/// POST …/check: whether POST or PUT would take this policy now.
void Check(const AdminParts& parts, const http::Request& request, http::Reply reply) {
  auto body = ReadFor(parts, request);
  if (!body.ok()) return reply(http::ErrorResponse(body.error()));
  AnswerChange(200, std::move(reply),
               std::move(body->warnings))(parts.changes.Check(std::move(body->policy)));
}

void Replace(const AdminParts& parts, const http::Request& request, http::Reply reply) {
  const auto version = ExpectedVersion(request);
  if (!version.ok()) return reply(http::ErrorResponse(version.error()));
  auto body = ReadFor(parts, request);
  if (!body.ok()) return reply(http::ErrorResponse(body.error()));
  parts.changes.Update(std::move(body->policy), WhoAsks(request),
                       AnswerChange(200, std::move(reply), std::move(body->warnings)), *version);
}

void Delete(const AdminParts& parts, const http::Request& request, http::Reply reply) {
  const auto version = ExpectedVersion(request);
  if (!version.ok()) return reply(http::ErrorResponse(version.error()));
  parts.changes.Delete(request.params[0], WhoAsks(request), AnswerChange(204, std::move(reply)),
                       *version);
}

}  // namespace

void AddAdminPolicies(http::Router& router, const AdminParts& parts) {
  const auto add = [&](std::string_view method, std::string_view path, http::Handler handler) {
    router.Add(method, path, Guarded(parts.guard, WithoutQuery(std::move(handler))));
  };
  add("GET", "/admin/algorithms",
      [](const http::Request&, const http::Reply& reply) { reply(Algorithms()); });
  add("GET", "/admin/policies/{key}",
      [&parts](const http::Request& request, const http::Reply& reply) {
        reply(Find(parts, request.params[0]));
      });
  add("POST", "/admin/policies", [&parts](const http::Request& request, http::Reply reply) {
    auto body = ReadNew(request);
    if (!body.ok()) return reply(http::ErrorResponse(body.error()));
    if (body->policy.key.empty()) return reply(http::ErrorResponse(400, "key: is missing"));
    Complete(parts, *body);
    parts.changes.Create(std::move(body->policy), WhoAsks(request),
                         AnswerChange(201, std::move(reply), std::move(body->warnings)));
  });
  add("POST", "/admin/policies/{key}/check",
      [&parts](const http::Request& request, http::Reply reply) {
        Check(parts, request, std::move(reply));
      });
  router.Add("GET", "/admin/policies", Guarded(parts, List));
  router.Add("PUT", "/admin/policies/{key}", Guarded(parts, Replace));
  router.Add("DELETE", "/admin/policies/{key}", Guarded(parts, Delete));
}

}  // namespace weir::admin
