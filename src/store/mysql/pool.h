#pragma once

#include <memory>

#include "store/sql/pool.h"
#include "weir/result.h"

namespace weir::store::mysql {

/// Limits in MySQL or MariaDB: a thread for each connection. Fails if the url is wrong or the
/// database refuses us. A server that cannot be reached now is no failure: until it can, everything
/// is answered with kUnavailable.
Result<std::shared_ptr<sql::Pool>> OpenPool(sql::PoolOptions options);

}  // namespace weir::store::mysql
