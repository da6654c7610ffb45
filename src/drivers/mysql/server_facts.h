#pragma once

#include <string>

#include "weir/result.h"

struct st_mysql;

namespace weir::mysql {

/// What a server says about itself: enough to tell a primary from a replica, and two primaries from
/// one that was reached by two addresses.
struct ServerFacts {
  bool read_only = false;
  std::string identity = {};
  /// Of a Galera cluster or a replication group, whose members may all accept writes; else empty.
  std::string cluster = {};
};

/// Asks on a connection that is open. On an error `handle` has its number.
Result<ServerFacts> ReadFacts(st_mysql* handle);

/// True if both accept writes, and neither learns of the other's.
bool AreRivals(const ServerFacts& one, const ServerFacts& other);

}  // namespace weir::mysql
