#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "store/sql/mark.h"
#include "store/store.h"
#include "weir/clock.h"

namespace weir::store::sql {

struct PoolOptions {
  std::string url;              ///< of the database, with a user and perhaps a password
  std::size_t connections = 4;  ///< transactions that are under way at once
  bool migrate = true;          ///< make the table if it is not there
  /// From Apply to the answer, whatever the server does.
  std::chrono::milliseconds timeout{1000};
  std::chrono::milliseconds connect_timeout{1000};
  /// Between looks at a part of the table for rows that have expired; zero: never. It goes faster
  /// by itself while there is much to delete.
  std::chrono::milliseconds sweep_interval{500};
  /// Rows are kept this long after they expired, should the server's clock be set back.
  std::chrono::milliseconds sweep_grace{60'000};
  /// Told if the database loses data. Needs a sweep_interval.
  StateWatcher watcher = {};
  /// Decides instead of the server's clock: for tests. Must outlive the pool and be one for all
  /// nodes.
  const Clock* clock = nullptr;
};

/// Limits in a SQL database, shared by all nodes that use it: the connections, their threads, and
/// what all reactors' stores have in common. Connects on first use, and again whenever a connection
/// is lost.
///
/// Thread-safe.
class Pool {
 public:
  Pool() = default;
  virtual ~Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// The store of the thread that runs `io`. It keeps the pool.
  virtual std::unique_ptr<Store> MakeStore(boost::asio::io_context& io) = 0;
};

}  // namespace weir::store::sql
