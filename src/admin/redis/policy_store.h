#pragma once

#include <memory>
#include <string>

#include "admin/policy_store.h"
#include "admin/shared/shared_policy_store.h"
#include "policy/catalog.h"
#include "weir/result.h"

namespace weir::policy::redis {

/// Policies in Redis or a Redis Cluster (see shared::SharedPolicyStore), only as durable as Redis's
/// persistence: without it, a restart of the server loses them, and a node that knows them restores
/// them, without their history. Nodes check for changes four times a second.
Result<std::unique_ptr<PolicyStore>> Open(const std::string& url, Catalog& catalog,
                                          shared::Options options);

}  // namespace weir::policy::redis
