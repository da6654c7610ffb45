#pragma once

#include <string>

#include "weir/result.h"

struct st_mysql;

namespace weir::mysql {

/// What a server reports about itself: enough to tell a primary from a replica, and two primaries
/// from one that was reached by two addresses.
struct ServerFacts {
  bool read_only = false;
  std::string identity = {};
  /// Of a Galera cluster or a replication group, whose members may all accept writes; else empty.
  std::string cluster = {};
};

/// Queries an open connection. On an error `handle` has its number.
Result<ServerFacts> ReadFacts(st_mysql* handle);

/// True if both accept writes, and neither receives the other's.
bool AreRivals(const ServerFacts& one, const ServerFacts& other);

}  // namespace weir::mysql
