#include "policy/policy_documents.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <iterator>
#include <map>
#include <utility>

#include "admin/file_changes.h"
#include "admin/from_file.h"
#include "admin/policy_body.h"
#include "algorithm/algorithms.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "console.h"
#include "policy/policy_file.h"

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

Result<std::string> ReadAll(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  Result<std::string> text = ReadFile(path, policy::yaml::Limits{}.max_bytes);
  if (!text.ok()) return Invalid(path + ": " + text.error().message);
  return text;
}

/// The policy with another expiresAt.
Result<PolicyDocument> Ending(const PolicyDocument& document, const std::string& end) {
  dom::parser parser;
  dom::object fields;
  if (parser.parse(document.json).get(fields) != simdjson::SUCCESS) return document;
  PolicyDocument ending;
  ending.json = JsonObject([&](JsonWriter& json) {
    for (const auto& [name, value] : fields) {
      const bool old_end = name == "expiresAt" || name == "expires_at";
      if (!old_end) json.AnyKey(name).Raw(simdjson::minify(value));
    }
    json.RawField("expiresAt", end);
  });
  Result<http::PolicyBody> body = Read(ending.json);
  if (!body.ok()) return body.error();
  ending.policy = std::move(body->policy);
  ending.warnings = document.warnings;
  return ending;
}

/// A policy file, as the service would read it.
Result<std::vector<PolicyDocument>> ReadYaml(const std::string& text, const std::string& path) {
  std::vector<policy::yaml::Problem> problems;
  const auto definitions = policy::ParsePolicies(text, path == "-" ? "input" : path, problems);
  if (!problems.empty()) {
    return Error{Code::kInvalidArgument, policy::yaml::ToString(problems)};
  }
  std::vector<PolicyDocument> documents;
  for (const policy::Definition& definition : definitions) {
    Result<policy::StoredPolicy> stored = policy::FromDefinition(definition);
    if (!stored.ok()) return stored.error();
    std::string json = policy::ToJson(*stored);
    Result<http::PolicyBody> body = Read(json);
    if (!body.ok()) return body.error();
    documents.push_back({std::move(*stored), std::move(json), std::move(body->warnings)});
  }
  if (documents.empty()) return Error{Code::kInvalidArgument, path + ": has no policies"};
  return documents;
}

Result<std::vector<PolicyDocument>> ReadDocuments(const std::string& path) {
  const Result<std::string> text = ReadAll(path);
  if (!text.ok()) return text.error();
  dom::parser parser;
  dom::element root;
  const bool is_json = parser.parse(*text).get(root) == simdjson::SUCCESS;
  if (!is_json || root["policies"].error() == simdjson::SUCCESS) return ReadYaml(*text, path);
  std::vector<PolicyDocument> documents;
  const auto add = [&](dom::element one) -> Status {
    std::string json = simdjson::minify(one);
    Result<http::PolicyBody> body = Read(json);
    if (body.ok() && body->policy.key.empty()) {
      body = Error{Code::kInvalidArgument, "key: is missing"};
    }
    if (!body.ok()) {
      return Error{
          Code::kInvalidArgument,
          path + ": policy " + std::to_string(documents.size() + 1) + ": " + body.error().message};
    }
    documents.push_back({std::move(body->policy), std::move(json), std::move(body->warnings)});
    return {};
  };
  dom::array list;
  if (root.get(list) != simdjson::SUCCESS) {
    if (Status added = add(root); !added.ok()) return added.error();
    return documents;
  }
  for (const dom::element one : list) {
    if (Status added = add(one); !added.ok()) return added.error();
  }
  return documents;
}

}  // namespace

Result<std::vector<PolicyDocument>> ReadPolicyDocuments(const std::string& path,
                                                        const std::string& end) {
  Result<std::vector<PolicyDocument>> documents = ReadDocuments(path);
  if (!documents.ok() || end.empty()) return documents;
  for (PolicyDocument& document : *documents) {
    Result<PolicyDocument> ending = Ending(document, end);
    if (!ending.ok()) return ending.error();
    document = std::move(*ending);
  }
  return documents;
}

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
