#include "policy/policy_documents.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "admin/file_changes.h"
#include "admin/policy_body.h"
#include "algorithm/algorithms.h"
#include "base/json_writer.h"
#include "console.h"

namespace weir::app {
namespace {

namespace dom = simdjson::dom;

Result<http::PolicyBody> Read(std::string json) {
  json.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  return http::ReadPolicyBody(json);
}

/// Whether policies of this algorithm use a field: answers contain the numbers of all of them.
bool Uses(const algorithm::Descriptor& kind, std::string_view field) {
  if (field == "refillRate") return kind.refills();
  if (field == "windowSeconds") return !kind.refills();
  return field != "buckets" || kind.has_buckets;
}

using FieldMap = std::map<std::string, std::string>;

/// The fields of an object with their values as JSON, without what a service adds to a policy.
FieldMap ReadFieldMap(const std::string& json) {
  static constexpr std::array<std::string_view, 8> kAdded = {
      "id", "version", "policyKey", "source", "readOnly", "definedIn", "shadowInFile", "override"};
  FieldMap fields;
  dom::parser parser;
  dom::object object;
  if (parser.parse(json).get(object) != simdjson::SUCCESS) return fields;
  for (const auto& [name, value] : object) {
    if (std::find(kAdded.begin(), kAdded.end(), name) != kAdded.end()) continue;
    fields.emplace(name, simdjson::minify(value));
  }
  return fields;
}

/// The fields of a policy with their values as JSON, defaults included, so that a file that omits
/// them does not differ.
FieldMap FieldsOf(const policy::StoredPolicy& policy) {
  FieldMap fields = ReadFieldMap(policy::ToJson(policy));
  if (policy.type.is_override()) return fields;
  const algorithm::Descriptor& kind = algorithm::Of(policy.type.algorithm());
  std::erase_if(fields, [&kind](const auto& field) { return !Uses(kind, field.first); });
  return fields;
}

std::vector<FieldChange> Differences(const FieldMap& before, const FieldMap& after) {
  std::vector<FieldChange> changes;
  for (const auto& [field, value] : after) {
    const auto found = before.find(field);
    if (found == before.end()) {
      changes.push_back({field, "", value});
    } else if (found->second != value) {
      changes.push_back({field, found->second, value});
    }
  }
  for (const auto& [field, value] : before) {
    if (!after.contains(field)) changes.push_back({field, value, ""});
  }
  return changes;
}

}  // namespace

Result<std::vector<FieldChange>> ChangesTo(const std::string& now, const PolicyDocument& document) {
  FieldMap before;
  if (!now.empty()) {
    Result<http::PolicyBody> current = Read(now);
    if (!current.ok()) return current.error();
    before = FieldsOf(current->policy);
  }
  return Differences(before, FieldsOf(document.policy));
}

Result<std::vector<FieldChange>> ChangesToFile(const std::string& now,
                                               const PolicyDocument& document) {
  if (document.policy.type.is_override()) {
    return Error{Code::kInvalidArgument, "an override is not a policy of a file"};
  }
  const Result<policy::Definition> definition = policy::ToDefinition(document.policy);
  if (!definition.ok()) return definition.error();
  FieldMap after = ReadFieldMap(admin::FilePolicyJson(*definition));
  if (document.policy.expires_at != 0) {
    after["expiresAt"] = ReadFieldMap(policy::ToJson(document.policy))["expiresAt"];
  }
  return Differences(ReadFieldMap(now), after);
}

std::string PrettyPolicy(const std::string& json) {
  dom::parser parser;
  dom::object object;
  if (parser.parse(json).get(object) != simdjson::SUCCESS) return {};
  std::string_view type;
  const bool typed = object["type"].get(type) == simdjson::SUCCESS;
  const algorithm::Descriptor* const kind = typed ? algorithm::FindNamed(type) : nullptr;
  Table table({"field", "value"});
  for (const auto& [name, value] : object) {
    if (kind != nullptr && !Uses(*kind, name)) continue;
    std::string_view text;
    const bool plain = value.get(text) == simdjson::SUCCESS;
    table.Add(
        {std::string(name), plain ? std::string(text) : std::string(simdjson::minify(value))});
  }
  return table.ToString();
}

}  // namespace weir::app
