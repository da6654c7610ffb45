#include "policy/policy_words.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "admin/policy_body.h"
#include "admin/policy_store.h"
#include "base/duration.h"
#include "base/instant.h"
#include "base/json_writer.h"
#include "console.h"
#include "remote/json_fields.h"

namespace weir::app {

namespace dom = simdjson::dom;

namespace {

/// "fixed_window(limit=5, window=1m)" → "5 in 1m".
std::string Brief(const std::string& quota) {
  const auto field = [&quota](const std::string& name) -> std::string {
    const std::size_t at = quota.find(name + "=");
    if (at == quota.npos) return {};
    const std::size_t begin = at + name.size() + 1;
    return quota.substr(begin, quota.find_first_of(",)", begin) - begin);
  };
  const std::string most = field("capacity") + field("limit");
  if (const std::string refill = field("refill"); !refill.empty())
    return most + ", refill " + refill;
  if (const std::string window = field("window"); !window.empty()) return most + " in " + window;
  return field("lease").empty() ? quota : most + " at once";
}

}  // namespace

int ForEachPolicy(const Remote& remote, std::string_view source,
                  const std::function<void(dom::element)>& visit) {
  dom::parser parser;
  std::string cursor;
  const std::string first = "/admin/policies?limit=200&source=" + std::string(source);
  do {
    Result<ServiceReply> page = remote.Exchange("GET", first + "&cursor=" + UrlEscaped(cursor));
    if (!page.ok()) return Fail(page.error());
    if (!page->ok()) return FailRefused(*page);
    dom::array policies;
    if (parser.parse(page->body).get(policies) != simdjson::SUCCESS) {
      return FailUnexpected();
    }
    for (const dom::element policy : policies) visit(policy);
    cursor = page->Header("x-next-cursor");
  } while (!cursor.empty());
  return kExitOk;
}

std::string StateOf(dom::element policy) {
  if (TextOf(policy, "unlimited") == "true") return "unlimited";
  const std::string state = TextOf(policy, "shadow") == "true" ? "shadow" : "enforced";
  return TextOf(policy, "override").empty() ? state : state + " by override";
}

std::string LimitOf(dom::element policy) {
  if (const std::string quota = TextOf(policy, "quota"); !quota.empty()) return Brief(quota);
  std::string json = simdjson::minify(policy);
  json.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  const auto stored = http::ReadPolicy(json);
  if (!stored.ok()) return {};
  const auto definition = policy::ToDefinition(*stored);
  if (!definition.ok()) return {};
  return definition->quota ? Brief(definition->quota->ToString()) : "unlimited";
}

std::string AppliesTo(dom::element policy) {
  if (TextOf(policy, "type") == "OVERRIDE") return {};
  if (TextOf(policy, "source") == "default") return "keys without a policy of their own";
  dom::object match;
  if (policy["match"].get(match) != simdjson::SUCCESS) return "key " + TextOf(policy, "policyKey");
  std::string text;
  for (const auto& [entry, value] : match) {
    text += (text.empty() ? "" : ", ") + std::string(entry) + "=" +
            std::string(value.is_string() ? value.get_string().value() : simdjson::minify(value));
  }
  if (text.empty()) text = "every request";
  const std::string domain = TextOf(policy, "domain");
  return domain.empty() || domain == policy::kDefaultDomain ? text : domain + ": " + text;
}

void PrintWarnings(const std::string& key, const ServiceReply& reply,
                   const std::vector<std::string>& said) {
  simdjson::dom::parser parser;
  simdjson::dom::array warnings;
  if (parser.parse(reply.body)["warnings"].get(warnings) != simdjson::SUCCESS) return;
  for (const simdjson::dom::element warning : warnings) {
    std::string_view text;
    if (warning.get(text) != simdjson::SUCCESS) continue;
    if (std::find(said.begin(), said.end(), text) != said.end()) continue;
    std::cerr << "weir: warning: " << Shown(key, 200) << ": " << Shown(text, 500) << '\n';
  }
}

Result<std::string> EndValue(const std::string& expires) {
  if (expires.empty()) return std::string();
  if (expires == "never") return std::string("null");
  std::optional<Nanos> instant = ParseInstant(expires);
  if (!instant) {
    const auto duration = ParseDuration(expires);
    if (!duration.ok()) {
      return Error{Code::kInvalidArgument,
                   "--expires must be a time like 2030-01-31T12:00:00Z, a duration like 2h, or "
                   "never, not " +
                       Shown(expires)};
    }
    instant = SystemClock::Get().Now() + duration->count();
  } else if (*instant <= SystemClock::Get().Now()) {
    return Error{Code::kInvalidArgument, "--expires " + expires + " is in the past"};
  }
  return JsonText([&](JsonWriter& json) { json.Value(FormatInstant(*instant)); });
}

namespace {

/// A change as in the audit log; only its number if the entry no longer exists.
struct Logged {
  std::string text;    ///< "change 3 (policy.update of policy:p)", or "change 3"
  std::string target;  ///< "policy:p"
  std::int64_t undoes = 0;
};

Logged LookUp(const Remote& remote, std::int64_t change) {
  Logged logged{"change " + std::to_string(change), ""};
  const Result<ServiceReply> reply =
      remote.Exchange("GET", "/admin/audit?limit=1&before=" + std::to_string(change + 1));
  simdjson::dom::parser parser;
  simdjson::dom::element entry;
  if (!reply.ok() || !reply->ok() ||
      parser.parse(reply->body)["changes"].at(0).get(entry) != simdjson::SUCCESS ||
      NumberOf(entry, "id") != change) {
    return logged;
  }
  logged.target = TextOf(entry, "target");
  logged.text += " (" + Shown(TextOf(entry, "action")) + " of " + Shown(logged.target) + ")";
  logged.undoes = NumberOf(entry, "undoes");
  return logged;
}

std::string NextText(std::string_view next) {
  if (next.empty()) return "no earlier change to undo\n";
  return "to go further back, undo change " + Shown(next) + "\n";
}

}  // namespace

int Undo(const Remote& remote, std::int64_t change, const std::string& expires, const UndoOf& of,
         const std::function<int(const ServiceReply&)>& show) {
  const Result<std::string> end = EndValue(expires);
  if (!end.ok()) return Fail(end.error());
  const std::string body =
      end->empty() ? "" : JsonObject([&](JsonWriter& json) { json.RawField("expiresAt", *end); });
  const Logged logged = LookUp(remote, change);
  if (of.is_it && !logged.target.empty() && !of.is_it(logged.target)) {
    return Fail({Code::kInvalidArgument, logged.text + " is not of " + of.what +
                                             "; weir audit --undo " + std::to_string(change) +
                                             " undoes it"});
  }
  return remote.Ask("POST", "/admin/audit/" + std::to_string(change) + "/undo", body,
                    [&](const ServiceReply& reply) {
                      if (!remote.json) {
                        std::cout << "undone: " << logged.text;
                        if (logged.undoes != 0) {
                          std::cout << ", which had undone change " << logged.undoes
                                    << "; that one applies again";
                        }
                        std::cout << (reply.status == 204 ? "; it no longer exists\n" : "\n")
                                  << NextText(reply.Header("weir-next-undo"));
                      }
                      return show(reply);
                    });
}

}  // namespace weir::app
