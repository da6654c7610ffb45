#pragma once

#include <chrono>
#include <string>

#include "drivers/mysql/connection.h"
#include "store/sql/sweep_options.h"

namespace weir::store::mysql {

/// Deletes rows that have expired, a small part of the table after the other, round and round.
/// Several nodes may do so at once: who comes second finds nothing, and rows in use are left alone.
///
/// Thread safety: belongs to one thread; Abort may be called from any.
class Sweeper {
 public:
  using Options = sql::SweepOptions;

  Sweeper(weir::mysql::ConnectionOptions connection, const Options& options);

  /// Looks at the next part; answers how long to wait before the one after it.
  std::chrono::milliseconds Sweep();
  void Abort() noexcept { connection_.Abort(); }

 private:
  const Options options_;
  weir::mysql::Connection connection_;
  std::string after_;
};

}  // namespace weir::store::mysql
