#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/definition.h"
#include "policy/fields.h"
#include "policy/yaml.h"

namespace weir::policy {

/// How deeply `policies` may be nested in policies.
inline constexpr int kMaxPolicyNesting = 8;

/// Reads the text of a policy file (docs/reference/policies.md). Errors are added to `problems`,
/// with their positions; the definitions must not be used then. `lenient`: unknown fields of an
/// Envoy configuration are skipped.
std::vector<Definition> ParsePolicies(std::string_view text, const std::string& file,
                                      std::vector<yaml::Problem>& problems, bool lenient = false);

/// As above, from a tree that has been parsed already; problems go to the report.
std::vector<Definition> ReadPolicies(const yaml::Node& root, yaml::Report& report);

/// As above, from a file on disk.
std::vector<Definition> LoadPolicyFile(const std::string& path,
                                       std::vector<yaml::Problem>& problems, bool lenient = false);

/// The files that `paths` name: a folder stands for its *.yaml and *.yml sorted by name, without
/// hidden ones. A folder that cannot be read is a problem: it may contain any number of them.
std::vector<std::string> PolicyFiles(const std::vector<std::string>& paths,
                                     std::vector<yaml::Problem>& problems);

/// Reads a quota: `{ token_bucket: { capacity: 100, refill_per_second: 10 } }`. nullopt, with the
/// problem reported, if it is invalid. `unlimited` is not a quota and not read here.
std::optional<Quota> ParseQuota(const yaml::Node& node, yaml::Report& report);

/// Reads a policy's `metadata`, as JSON; empty if absent.
std::string ReadMetadata(yaml::Fields& fields, yaml::Report& report);

/// Reads a file's `charge`; `usual` if absent.
ChargeMode ReadChargeMode(yaml::Fields& fields, yaml::Report& report, ChargeMode usual);

/// True if `text` may name a policy, a domain or an entry; else reports `what` at `node`.
bool CheckName(std::string_view text, const yaml::Node& node, const std::string& what,
               yaml::Report& report);

}  // namespace weir::policy
