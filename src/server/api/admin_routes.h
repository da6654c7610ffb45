#pragma once

#include "server/api/admin_guard.h"
#include "server/router.h"

namespace weir::server {

/// Adds GET /admin/routes: every method and path that this service answers. `router` and `guard`
/// must outlive it.
void AddAdminRoutes(Router& router, const AdminGuard& guard);

}  // namespace weir::server
