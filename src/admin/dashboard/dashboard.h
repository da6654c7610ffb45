#pragma once

#include "protocol/http/router.h"

namespace weir::admin {

/// Adds the dashboard at `/` and its files under `/assets/`. They are the same for all users and
/// contain nothing secret: the data they show comes from the admin API, with the key that the user
/// types.
void AddDashboard(http::Router& router);

}  // namespace weir::admin
