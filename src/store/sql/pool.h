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
  std::size_t connections = 4;  ///< concurrent transactions
  bool migrate = true;          ///< create the table if it does not exist
  /// From Apply to the answer, whatever the server does.
  std::chrono::milliseconds timeout{1000};
  std::chrono::milliseconds connect_timeout{1000};
  /// Between checks of a part of the table for expired rows; zero: never. It speeds up by itself
  /// while there is much to delete.
  std::chrono::milliseconds sweep_interval{500};
  /// Rows are kept this long after they expire, in case the server's clock is set back.
  std::chrono::milliseconds sweep_grace{60'000};
  /// Called if the database loses data. Needs a sweep_interval.
  StateWatcher watcher = {};
  /// For tests: used instead of the server's clock. Must outlive the pool and be the same for all
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
