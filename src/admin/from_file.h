#pragma once

#include "admin/policy_store.h"
#include "policy/definition.h"
#include "weir/result.h"

namespace weir::policy {

/// A policy of a file as the admin API keeps it. kInvalidArgument names what the API cannot keep:
/// nothing is left out silently.
Result<StoredPolicy> FromDefinition(const Definition& definition);

}  // namespace weir::policy
