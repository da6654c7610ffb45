#pragma once

#include <memory>
#include <string>

#include "admin/policy_store.h"
#include "admin/shared/shared_policy_store.h"
#include "policy/catalog.h"
#include "weir/result.h"

namespace weir::policy::mysql {

/// Creates or updates the tables of policies; does nothing if they are up to date. Blocks.
Status Migrate(const std::string& url);

/// Policies in MariaDB or MySQL (see shared::SharedPolicyStore). Every node checks for changes four
/// times a second.
Result<std::unique_ptr<PolicyStore>> Open(const std::string& url, Catalog& catalog,
                                          shared::Options options);

}  // namespace weir::policy::mysql
