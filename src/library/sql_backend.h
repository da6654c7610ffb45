#pragma once

// How the registry opens its backends: the common part of SQL databases, Redis, and another Weir.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "drivers/channel.h"
#include "library/backend.h"
#include "store/sql/pool.h"

namespace weir::library {

/// What is specific to one SQL database.
struct SqlParts {
  std::vector<std::string> hosts;
  std::chrono::milliseconds interval;  ///< how long messages to other nodes are collected
  std::function<Result<std::shared_ptr<store::sql::Pool>>(store::sql::PoolOptions)> open_pool;
  std::function<Result<store::KeyPage>(const std::string& url, std::chrono::milliseconds patience,
                                       const store::KeyQuery& query)>
      read_keys;
  std::function<std::unique_ptr<Channel>(std::string url, std::string name,
                                         Channel::Callbacks callbacks)>
      open_channel;
};

/// A pool for all reactors and a channel in the same database.
Result<std::unique_ptr<Backend>> OpenSqlBackend(const BackendOptions& options,
                                                store::guard::Guard& guard, SqlParts parts);

/// One server or a cluster: each reactor has its own connections.
Result<std::unique_ptr<Backend>> OpenRedisBackend(BackendOptions options,
                                                  store::guard::Guard& guard);

/// Another Weir: each reactor has its own connections. There is no channel between its nodes.
Result<std::unique_ptr<Backend>> OpenRemoteBackend(BackendOptions options,
                                                   store::guard::Guard& guard);

}  // namespace weir::library
