#pragma once

#include <memory>

#include "store/sql/pool.h"
#include "weir/result.h"

namespace weir::store::postgres {

/// Limits in PostgreSQL: one thread runs all connections. Fails if the table cannot be created or
/// is a newer version's. A server that cannot be reached now (libpq reports that like a refused
/// login) is not a failure: until it can, everything is answered with kUnavailable.
Result<std::shared_ptr<sql::Pool>> OpenPool(sql::PoolOptions options);

}  // namespace weir::store::postgres
