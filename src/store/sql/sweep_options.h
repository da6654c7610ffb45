#pragma once

#include <chrono>

#include "store/sql/mark.h"
#include "weir/clock.h"

namespace weir::store::sql {

/// How a sweeper of expired rows works. It raises the mark as well, because no check waits for its
/// connection.
struct SweepOptions {
  std::chrono::milliseconds interval{500};  ///< between two small parts of the table
  std::chrono::milliseconds grace{60'000};  ///< how long a row stays after it has expired
  const Clock* clock = nullptr;             ///< null: the server's
  StateWatcher watcher = {};
};

}  // namespace weir::store::sql
