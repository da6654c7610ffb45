// GET /admin/audit, POST /admin/audit/{id}/undo, and the wrappers that log changes.

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admin/admin.h"
#include "admin/return_body.h"
#include "admin/undo_order.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "protocol/http/error.h"
#include "protocol/http/query.h"
#include "telemetry/log.h"

namespace weir::admin {
namespace {

std::optional<std::int64_t> Number(std::string_view text) {
  return ParseNumber<std::int64_t>(text, 0, std::numeric_limits<std::int64_t>::max());
}

http::Response Listed(const std::vector<AuditEntry>& entries, std::size_t limit) {
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject().Key("changes").BeginArray();
  for (std::size_t i = 0; i < std::min(entries.size(), limit); ++i) AppendJson(json, entries[i]);
  json.EndArray();
  if (entries.size() > limit) json.Field("next", entries[limit - 1].id);
  json.EndObject();
  return response;
}

/// Reads "policy,key.reset": actions, or the parts before their dots.
Result<std::vector<std::string>> ReadActions(const http::Query& query, const char* name) {
  constexpr std::size_t kMost = 20;
  std::vector<std::string> actions;
  const std::string list = query.Find(name).value_or("");
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    actions.push_back(list.substr(at, end - at));
    at = end + 1;
    const bool valid =
        actions.back().find_first_not_of("abcdefghijklmnopqrstuvwxyz_.") == std::string::npos;
    if (valid && !actions.back().empty() && actions.size() <= kMost) continue;
    return Error{Code::kInvalidArgument,
                 std::string(name) + ": must be up to 20 actions such as policy.update or policy"};
  }
  return actions;
}

Result<policy::AuditQuery> ReadQuery(const http::Request& request) {
  const auto page = ReadPage(request.query, {"limit", "before", "action", "except", "target"});
  if (!page.ok()) return page.error();
  const http::Query& query = page->parameters;
  const auto before = Number(query.Find("before").value_or("0"));
  if (!before) return Error{Code::kInvalidArgument, "before: must be the ID of a change"};
  auto actions = ReadActions(query, "action");
  if (!actions.ok()) return actions.error();
  auto except = ReadActions(query, "except");
  if (!except.ok()) return except.error();
  return policy::AuditQuery{.before = *before,
                            .limit = page->limit,
                            .target = query.Find("target").value_or(""),
                            .actions = std::move(*actions),
                            .except = std::move(*except)};
}

void ListChanges(const AdminParts& parts, const http::Request& request, const http::Reply& reply) {
  auto query = ReadQuery(request);
  if (!query.ok()) return reply(http::ErrorResponse(query.error()));
  const std::size_t limit = query->limit;
  ++query->limit;  // one more than requested shows whether there is a next page
  parts.audit.ListEntries(
      std::move(*query), [reply, limit](const Result<std::vector<AuditEntry>>& entries) {
        reply(entries.ok() ? Listed(*entries, limit) : http::ErrorResponse(entries.error()));
      });
}

/// Adds to a success response, as Weir-Next-Undo, the change of the target to undo next.
http::Reply WithNextUndo(AuditLog& audit, const std::string& target, http::Reply reply) {
  return [&audit, target, reply = std::move(reply)](http::Response response) {
    if (response.status / 100 != 2) return reply(std::move(response));
    audit.ListEntries(
        {.limit = policy::kMaxPage, .target = target},
        [reply, response = std::move(response)](const Result<std::vector<AuditEntry>>& entries) {
          const std::int64_t next = entries.ok() ? InEffect(*entries) : 0;
          http::Response answer = response;
          if (next != 0) answer.headers.emplace_back("Weir-Next-Undo", std::to_string(next));
          reply(std::move(answer));
        });
  };
}

/// `any`: also changes of other things than policies.
void Undo(const AdminParts& parts, std::int64_t id, PolicyChanges::End end, bool any,
          std::string who, http::Reply given) {
  parts.audit.FindEntry(id, [&parts, end, any, who = std::move(who),
                             given = std::move(given)](const Result<AuditEntry>& entry) {
    if (!entry.ok()) return given(http::ErrorResponse(entry.error()));
    if (!any && !entry->action.starts_with("policy.")) {
      return given(http::ErrorResponse(
          403, "the role policies undoes changes of policies only; this one needs the role admin"));
    }
    http::Reply reply = WithNextUndo(parts.audit, entry->target, given);
    if (!parts.config_changes.Knows(entry->target)) {
      return parts.changes.Undo(entry->id, end, who, AnswerChange(200, std::move(reply)));
    }
    parts.config_changes.Undo(*entry, who, [reply](Result<Undoable::State> now) {
      if (!now.ok()) return reply(http::ErrorResponse(now.error()));
      http::Response response;
      response.status = now->has_value() ? 200 : 204;
      response.body = now->value_or("");
      reply(std::move(response));
    });
  });
}

/// The target of a change through a wrapped handler: "key:user-1", "slots:/admin/…".
std::string TargetOf(std::string_view action, const http::Request& request) {
  std::string target(action.substr(0, action.find('.')));
  target += ':';
  return target += request.params.empty() ? std::string(request.path) : request.params.front();
}

/// The object with the warnings as one more field, if there are any.
std::string WithWarnings(std::string json, const std::vector<std::string>& warnings) {
  if (warnings.empty()) return json;
  json.pop_back();
  json += ",\"warnings\":";
  json += JsonText([&](JsonWriter& list) {
    list.BeginArray();
    for (const std::string& warning : warnings) list.Value(warning);
    list.EndArray();
  });
  return json += '}';
}

}  // namespace

PolicyChanges::Done AnswerChange(int status, http::Reply reply, std::vector<std::string> warnings) {
  return [status, reply = std::move(reply),
          warnings = std::move(warnings)](Result<std::optional<policy::StoredPolicy>> outcome) {
    if (!outcome.ok()) return reply(http::ErrorResponse(outcome.error()));
    http::Response response;
    response.status = outcome->has_value() ? status : 204;
    if (outcome->has_value()) response.body = WithWarnings(policy::ToJson(**outcome), warnings);
    reply(std::move(response));
  };
}

http::Reply AuditedReply(AuditLog& audit, const std::string& action, const http::Request& request,
                         http::Reply reply) {
  AuditEntry entry{.who = WhoAsks(request), .action = action, .target = TargetOf(action, request)};
  return [&audit, entry = std::move(entry), reply = std::move(reply)](http::Response response) {
    if (response.status / 100 != 2 || response.unchanged) return reply(std::move(response));
    AuditEntry made = entry;
    made.after = response.body;
    telemetry::Log(
        telemetry::Level::kInfo, made.action,
        {{"target", std::string_view(made.target)}, {"who", std::string_view(made.who)}});
    audit.Append(std::move(made), [reply, response](const Result<std::int64_t>& written) {
      if (!written.ok()) {
        Error error = written.error();
        error.message =
            "the change was made, but could not be written to the audit log: " + error.message;
        return reply(http::ErrorResponse(error));
      }
      reply(response);
    });
  };
}

http::Handler Audited(AuditLog& audit, std::string action, http::Handler handler) {
  return [&audit, action = std::move(action), handler = std::move(handler)](
             const http::Request& request, http::Reply reply) {
    if (request.method == "GET" || request.method == "HEAD") {
      return handler(request, std::move(reply));
    }
    handler(request, AuditedReply(audit, action, request, std::move(reply)));
  };
}

void AddAdminAudit(http::Router& router, const AdminParts& parts) {
  router.Add("GET", "/admin/audit", Guarded(parts, ListChanges));
  router.Add(
      "POST", "/admin/audit/{id}/undo",
      Guarded(parts.guard, WithoutQuery([&parts](const http::Request& request, http::Reply reply) {
                const auto id = Number(request.params[0]);
                if (!id) return reply(http::ErrorResponse(400, "id: must be the ID of a change"));
                const auto end = ReadEnd(request.body);
                if (!end.ok()) return reply(http::ErrorResponse(end.error()));
                const bool any = !parts.guard.has_keys() ||
                                 parts.guard.AlsoAdmits(request, access::Operation::kAdmin);
                Undo(parts, *id, *end, any, WhoAsks(request), std::move(reply));
              })));
}

}  // namespace weir::admin
