#pragma once

#include <string>
#include <vector>

#include "admin/audit_log.h"
#include "base/json_writer.h"
#include "policy/policy_set.h"

namespace weir::admin {

/// How the source of policies that the admin API made is called.
inline constexpr std::string_view kAdminSource = "admin API";
/// How entries of the audit log name policies of files: "file:" and the policy's bucket names'
/// start.
inline constexpr std::string_view kFileTarget = "file:";

/// The fields of a policy of a file as the admin API shows it, without where it stands.
void AppendFilePolicy(JsonWriter& json, const policy::Definition& definition,
                      std::string_view source);
/// The same as an object, of a policy whose source is a file.
std::string FilePolicyJson(const policy::Definition& definition);

/// What a reload of the policy files changed, an entry of the audit log for each policy; at most
/// 1,000 and one more with the total count.
std::vector<policy::AuditEntry> FileChanges(const policy::PolicySet& before,
                                            const policy::PolicySet& after);

}  // namespace weir::admin
