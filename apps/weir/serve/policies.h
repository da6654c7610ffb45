#pragma once

// Where the policies of the admin API are stored: the only place where their backends are named.

#include <memory>
#include <string>

#include "admin/policy_store.h"
#include "config/config.h"
#include "drivers/sqlite/database.h"
#include "policy/catalog.h"
#include "weir/result.h"

namespace weir::app {

/// The URL that config.policy_store resolves to: `auto` is config.store if nodes can share that,
/// else `sqlite:`. May hold a password.
std::string PolicyStoreUrl(const config::Config& config);

/// Opens it. A database that is down is not an error unless config.distant.required says so.
Result<std::unique_ptr<policy::PolicyStore>> OpenPolicyStore(const config::Config& config,
                                                             sqlite::Database& database,
                                                             policy::Catalog& catalog);

}  // namespace weir::app
