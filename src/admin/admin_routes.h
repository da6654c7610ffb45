#pragma once

#include "admin/admin_guard.h"
#include "protocol/http/router.h"

namespace weir::admin {

/// Adds GET /admin/routes: every method and path that this service answers, and which of them
/// the caller may use. `router` and `guard`
/// must outlive it.
void AddAdminRoutes(http::Router& router, const AdminGuard& guard);

}  // namespace weir::admin
