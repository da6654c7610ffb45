#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "admin/admin.h"
#include "admin/file_changes.h"
#include "admin/policy_body.h"
#include "algorithm/algorithms.h"
#include "base/json_text.h"
#include "policy/policy_set.h"
#include "protocol/http/error.h"
#include "protocol/http/uri.h"

namespace weir::admin {
namespace {

http::Response Json(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

/// The JSON of a policy of a file, where it stands, and the override that has the say about its
/// shadow, if one has.
std::string WithPlace(const policy::Definition& definition, const policy::PolicyStore& stored) {
  std::string json = FilePolicyJson(definition);
  json.pop_back();
  json += ",\"definedIn\":";
  AppendJsonString(json, definition.source);
  if (definition.shadow_in_file) {
    json += *definition.shadow_in_file ? ",\"shadowInFile\":true" : ",\"shadowInFile\":false";
    const auto over = stored.Get(policy::OverrideKey(definition));
    if (over.ok()) json += ",\"override\":" + policy::ToJson(*over);
  }
  return json += '}';
}

/// The JSON of a stored policy, and where it comes from.
std::string WithSource(const policy::StoredPolicy& policy) {
  std::string json = policy::ToJson(policy);
  json.insert(json.size() - 1, ",\"source\":\"admin\"");
  return json;
}

/// The policy for keys that no other one names; nobody can change it here.
std::string DefaultJson(const policy::PolicySet& set) {
  std::string json = FilePolicyJson(set.default_policy().definition, "default");
  json.pop_back();
  json += ",\"definedIn\":";
  AppendJsonString(json, set.default_policy().definition.source);
  return json += '}';
}

/// One policy by the name that the list shows: of the admin API, else of a file (as its name, or as
/// domain/name), else the default.
http::Response Find(const AdminParts& parts, const std::string& key) {
  const auto stored = parts.policies.Get(key);
  if (stored.ok()) return Json(200, policy::ToJson(*stored));
  const auto set = parts.catalog.live().Current();
  for (const policy::Policy& policy : set->policies()) {
    const policy::Definition& definition = policy.definition;
    if (definition.source == kAdminSource) continue;
    if (definition.name != key && policy::OverrideKey(definition) != key) continue;
    return Json(200, WithPlace(definition, parts.policies));
  }
  if (key == set->default_policy().definition.name) return Json(200, DefaultJson(*set));
  return http::ErrorResponse(stored.error());
}

void AppendItem(std::string& list, std::string_view item) {
  if (list.size() > 1) list += ',';
  list += item;
}

/// Where a list goes on: among the policies of the admin API, after a key, or among those of files,
/// at an index. As text `a…` or `f…`.
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
  const auto [end, failed] =
      std::from_chars(cursor.data(), cursor.data() + cursor.size(), place.index);
  if (part != 'f' || failed != std::errc() || end != cursor.data() + cursor.size()) {
    return std::nullopt;
  }
  return place;
}

/// Adds policies of files from `index` on until there are `room` more; tells where to go on, if
/// there is more.
std::optional<std::size_t> AddFilePolicies(const policy::PolicySet& set,
                                           const policy::PolicyStore& stored, std::size_t index,
                                           std::size_t room, std::string& list) {
  const auto& policies = set.policies();
  for (; index < policies.size(); ++index) {
    if (policies[index].definition.source == kAdminSource) continue;
    if (room-- == 0) return index;
    AppendItem(list, WithPlace(policies[index].definition, stored));
  }
  return std::nullopt;
}

http::Response List(const AdminParts& parts, const http::Request& request) {
  const auto page = ReadPage(request.query);
  if (!page.ok()) return http::ErrorResponse(page.error());
  auto place = ReadPlace(page->cursor);
  if (!place) {
    return http::ErrorResponse(400, "cursor: give the X-Next-Cursor of an earlier answer");
  }
  const std::string source = http::QueryValue(request.query, "source").value_or("");
  if (source == "default") {
    return Json(200, "[" + DefaultJson(*parts.catalog.live().Current()) + "]");
  }
  http::Response response = Json(200, "[");
  std::size_t room = page->limit;
  std::string next;
  std::size_t total = 0;
  if (source != "files" && source != "file") {
    const bool wanted = !place->files;
    policy::PolicyStore::Page found = parts.policies.List(place->after, wanted ? room : 1);
    total += found.total;
    if (wanted) {
      for (const auto& policy : found.policies) AppendItem(response.body, WithSource(policy));
      room -= found.policies.size();
      if (!found.next.empty()) next = 'a' + found.next;
    }
  }
  if (source != "admin") {
    total += parts.catalog.status().file_policies;
    if (next.empty()) {
      const auto set = parts.catalog.live().Current();
      const auto more = AddFilePolicies(*set, parts.policies, place->index, room, response.body);
      if (more) next = 'f' + std::to_string(*more);
    }
  }
  response.body += ']';
  response.headers.emplace_back("X-Total-Count", std::to_string(total));
  GiveNextPage(response, next);
  return response;
}

/// What a policy's `type` may be, and which numbers it then takes: the dashboard's form.
http::Response Algorithms() {
  http::Response response = Json(200, "[");
  for (const algorithm::Descriptor& each : algorithm::kAlgorithms) {
    std::string item = "{\"type\":";
    AppendJsonString(item, each.type);
    item += ",\"name\":";
    AppendJsonString(item, each.name);
    item += ",\"title\":";
    AppendJsonString(item, each.title);
    item += each.refills() ? R"(,"fields":["capacity","refillRate")"
                           : R"(,"fields":["capacity","windowSeconds")";
    if (each.has_buckets) item += ",\"buckets\"";
    item += each.leases ? "],\"leases\":true}" : "],\"leases\":false}";
    AppendItem(response.body, item);
  }
  response.body += ']';
  return response;
}

}  // namespace

void AddAdminPolicies(http::Router& router, const AdminParts& parts) {
  const auto add = [&](std::string_view method, std::string_view path, http::Handler handler) {
    router.Add(method, path, Guarded(parts.guard, std::move(handler)));
  };
  add("GET", "/admin/algorithms",
      [](const http::Request&, const http::Reply& reply) { reply(Algorithms()); });
  add("GET", "/admin/policies", [&parts](const http::Request& request, const http::Reply& reply) {
    reply(List(parts, request));
  });
  add("GET", "/admin/policies/{key}",
      [&parts](const http::Request& request, const http::Reply& reply) {
        reply(Find(parts, request.params[0]));
      });
  add("POST", "/admin/policies", [&parts](const http::Request& request, http::Reply reply) {
    auto policy = http::ReadPolicy(request.body);
    if (!policy.ok()) return reply(http::ErrorResponse(policy.error()));
    parts.changes.Create(std::move(*policy), WhoAsks(request), AnswerChange(201, std::move(reply)));
  });
  add("PUT", "/admin/policies/{key}", [&parts](const http::Request& request, http::Reply reply) {
    auto policy = http::ReadPolicy(request.body);
    if (!policy.ok()) return reply(http::ErrorResponse(policy.error()));
    if (!policy->key.empty() && policy->key != request.params[0]) {
      return reply(http::ErrorResponse(400, "key: differs from the key in the path"));
    }
    policy->key = request.params[0];
    parts.changes.Update(std::move(*policy), WhoAsks(request), AnswerChange(200, std::move(reply)));
  });
  add("DELETE", "/admin/policies/{key}", [&parts](const http::Request& request, http::Reply reply) {
    parts.changes.Delete(request.params[0], WhoAsks(request), AnswerChange(204, std::move(reply)));
  });
}

}  // namespace weir::admin
