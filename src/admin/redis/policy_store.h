#pragma once

#include <memory>
#include <string>

#include "admin/policy_store.h"
#include "admin/shared/shared_policy_store.h"
#include "policy/catalog.h"
#include "weir/result.h"

namespace weir::policy::redis {

/// Policies in Redis or a Redis Cluster (see shared::SharedPolicyStore), as safe as what is written
/// there is: without persistence a restart of the server forgets them, and a node that knows them
/// puts them back, without their history. Nodes look for changes four times a second.
Result<std::unique_ptr<PolicyStore>> Open(const std::string& url, Catalog& catalog,
                                          shared::Options options);

}  // namespace weir::policy::redis
