#pragma once

// Policies in JSON files, as the admin API accepts them, and how they differ from those in force.

#include <string>
#include <vector>

#include "admin/policy_store.h"
#include "policy/yaml.h"
#include "weir/result.h"

namespace weir::app {

struct PolicyDocument {
  policy::StoredPolicy policy;
  std::string json;                        ///< as written in the file
  std::vector<std::string> warnings = {};  ///< numbers in it that its algorithm does not use
  std::string place = {};                  ///< in a YAML file: "policies.yaml:7:5"
};

struct FieldChange {
  std::string field;
  std::string before;  ///< JSON; empty: not there
  std::string after;
};

/// Reads one policy or an array of them (JSON), or a policy file (YAML); "-" is standard input.
/// `end` is the JSON of the expiresAt that all of them get; empty: what they have. What is wrong is
/// added to `problems`, with its place; the documents are then not to be used.
std::vector<PolicyDocument> ReadPolicyDocuments(const std::string& path, const std::string& end,
                                                std::vector<policy::yaml::Problem>& problems);

/// What the document would change of the policy whose JSON is `now` (empty: there is none). Fields
/// that a service adds to policies (id, version) do not count.
Result<std::vector<FieldChange>> ChangesTo(const std::string& now, const PolicyDocument& document);

/// Likewise for a policy of the service's files, whose JSON has other fields.
Result<std::vector<FieldChange>> ChangesToFile(const std::string& now,
                                               const PolicyDocument& document);

/// A policy's JSON with a field per line, without the numbers that its algorithm does not use, safe
/// for terminals; empty if it is not JSON.
std::string PrettyPolicy(const std::string& json);

}  // namespace weir::app
