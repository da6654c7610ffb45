#pragma once

#include <memory>
#include <string>

#include "admin/policy_store.h"
#include "admin/shared/shared_policy_store.h"
#include "policy/catalog.h"
#include "weir/result.h"

namespace weir::policy::postgres {

/// Creates or updates the tables of policies; does nothing if they are up to date. Blocks.
Status Migrate(const std::string& url);

/// Policies in PostgreSQL (see shared::SharedPolicyStore). Changes reach every node through LISTEN
/// and NOTIFY.
Result<std::unique_ptr<PolicyStore>> Open(const std::string& url, Catalog& catalog,
                                          shared::Options options);

}  // namespace weir::policy::postgres
