#pragma once

#include "admin/in_force.h"
#include "admin/redis/mark.h"
#include "admin/redis/session.h"
#include "weir/result.h"

namespace weir::policy::redis {

/// Gives a server that lost policies those that a node knows, up to `known`, unless another node
/// has. Keys that the server has stay as they are, `there` and others. Then the count goes on
/// beyond what any node has seen, so that all of them read everything again. `past` is what the
/// policies have of epochs before that of `known`: whoever knows no more than that adds nothing.
Status PutBack(Session& session, const Mark& known, const Past& past, const PolicyMap& policies,
               const PolicyMap& there);

}  // namespace weir::policy::redis
