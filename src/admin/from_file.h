#pragma once

#include "admin/policy_store.h"
#include "policy/definition.h"
#include "weir/result.h"

namespace weir::policy {

/// A file's policy in the form that the admin API stores. kInvalidArgument names what the API
/// cannot store: nothing is left out silently.
Result<StoredPolicy> FromDefinition(const Definition& definition);

}  // namespace weir::policy
