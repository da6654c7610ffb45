#pragma once

#include <string>
#include <vector>

#include "admin/audit_log.h"
#include "base/json_writer.h"
#include "policy/policy_set.h"

namespace weir::admin {

/// The source of policies made by the admin API, as Definition::source has it.
inline constexpr std::string_view kAdminSource = "admin API";
/// The prefix of the names that audit log entries use for policies of files; it is followed by the
/// start of the policy's bucket names.
inline constexpr std::string_view kFileTarget = "file:";

/// Appends the fields of a file's policy as the admin API shows them, without its location.
void AppendFilePolicy(JsonWriter& json, const policy::Definition& definition,
                      std::string_view source);
/// The same fields as an object, for a policy whose source is a file.
std::string FilePolicyJson(const policy::Definition& definition);

/// What a reload of the policy files changed: one audit log entry for each policy, at most 1,000,
/// and then one more with the total count.
std::vector<policy::AuditEntry> FileChanges(const policy::PolicySet& before,
                                            const policy::PolicySet& after);

}  // namespace weir::admin
