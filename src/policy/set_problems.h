#pragma once

#include <string>
#include <vector>

#include "policy/definition.h"
#include "policy/policy_set.h"
#include "policy/yaml.h"

namespace weir::policy {

/// What keeps policies of files from being in force together, each with the place of the policy: a
/// name, key or chain that another one has already, or that this process cannot charge it (see
/// CheckChargeable). Empty: PolicySet::Compile takes them, unless there are too many. At most 100.
std::vector<yaml::Problem> SetProblems(const std::vector<Definition>& definitions,
                                       const CompileOptions& options);

/// A problem at the place that Definition::source names, "policies.yaml:7:5"; the message may begin
/// with it.
yaml::Problem ProblemAt(const std::string& source, std::string message);

}  // namespace weir::policy
