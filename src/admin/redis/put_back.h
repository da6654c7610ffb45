#pragma once

#include "admin/in_force.h"
#include "admin/redis/mark.h"
#include "admin/redis/session.h"
#include "weir/result.h"

namespace weir::policy::redis {

/// Restores on a server that lost policies those that this node knows, up to `known`, unless
/// another node has. Keys on the server, in `there` or not, stay as they are. Then the count skips
/// ahead of what any node has seen, so that all read everything again. `past` is what `policies`
/// contain of epochs before that of `known`: a node that knows no more than that adds nothing.
Status PutBack(Session& session, const Mark& known, const Past& past, const PolicyMap& policies,
               const PolicyMap& there);

}  // namespace weir::policy::redis
