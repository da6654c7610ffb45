#include "policy/policy_compare.h"

#include <simdjson.h>

#include <iostream>
#include <utility>

#include "base/json_writer.h"
#include "console.h"
#include "remote/json_fields.h"

namespace weir::app {
namespace {

namespace dom = simdjson::dom;

/// Whether a policy can be changed here: under a name that the admin API does not have,
/// the service shows a file's policy, or the default policy.
bool IsStored(const std::string& json) {
  dom::parser parser;
  dom::element policy;
  return parser.parse(json).get(policy) == simdjson::SUCCESS && TextOf(policy, "readOnly").empty();
}

/// Where a file of the service defines the policy of the document; empty if none does.
std::string PlaceInFile(const std::string& json, const PolicyDocument& document) {
  dom::parser parser;
  dom::element policy;
  if (document.policy.type.is_override()) return {};
  if (parser.parse(json).get(policy) != simdjson::SUCCESS) return {};
  const bool same = TextOf(policy, "source") == "file" &&
                    TextOf(policy, "policyKey") == document.policy.key &&
                    TextOf(policy, "domain") == document.policy.domain;
  return same ? TextOf(policy, "definedIn") : std::string();
}

const char* WordFor(const Compared& one) {
  if (one.same()) return "unchanged";
  if (!one.defined_in.empty()) return "conflict";
  return one.exists ? "update" : "create";
}

void AppendCompared(JsonWriter& json, const Compared& one) {
  json.Field("policyKey", one.document.policy.key).Field("action", WordFor(one));
  if (!one.defined_in.empty()) json.Field("definedIn", one.defined_in);
  json.Key("changes").BeginArray();
  for (const FieldChange& change : one.changes) {
    json.BeginObject()
        .Field("field", change.field)
        .RawField("before", change.before.empty() ? "null" : change.before)
        .RawField("after", change.after.empty() ? "null" : change.after)
        .EndObject();
  }
  json.EndArray();
}

}  // namespace

Result<Compared> CompareWith(PolicyDocument document, const ServiceReply& now) {
  Compared one{.document = std::move(document), .exists = now.ok() && IsStored(now.body)};
  if (now.ok() && !one.exists) one.defined_in = PlaceInFile(now.body, one.document);
  Result<std::vector<FieldChange>> changes =
      one.defined_in.empty() ? ChangesTo(one.exists ? now.body : std::string(), one.document)
                             : ChangesToFile(now.body, one.document);
  if (!changes.ok()) return changes.error();
  one.changes = std::move(*changes);
  return one;
}

void Print(const Compared& one, bool json) {
  if (json) {
    std::cout << JsonObject([&](JsonWriter& line) { AppendCompared(line, one); }) << '\n';
    return;
  }
  std::cout << WordFor(one) << ' ' << Shown(one.document.policy.key);
  if (!one.defined_in.empty()) {
    std::cout << ": defined in " << Shown(one.defined_in, 200)
              << (one.same() ? "" : "; change it there");
  }
  std::cout << '\n';
  for (const FieldChange& change : one.changes) {
    std::cout << "  " << Shown(change.field) << ": "
              << (change.before.empty() ? "-" : Shown(change.before)) << " → "
              << (change.after.empty() ? "-" : Shown(change.after)) << '\n';
  }
}

}  // namespace weir::app
