#pragma once

#include <memory>

#include "store/sql/pool.h"
#include "weir/result.h"

namespace weir::store::mysql {

/// Limits in MySQL or MariaDB: one thread per connection. Fails if the URL is wrong or the database
/// refuses the login. A server that cannot be reached now is not a failure: until it can,
/// everything is answered with kUnavailable.
Result<std::shared_ptr<sql::Pool>> OpenPool(sql::PoolOptions options);

}  // namespace weir::store::mysql
