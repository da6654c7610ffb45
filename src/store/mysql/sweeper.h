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

  /// Looks at the next part, or raises the mark; answers how long to wait before the next call.
  std::chrono::milliseconds Step();
  void Abort() noexcept { connection_.Abort(); }

 private:
  std::chrono::milliseconds Sweep();
  void RaiseMark();

  const Options options_;
  weir::mysql::Connection connection_;
  std::string after_;
  sql::Mark mark_;
};

}  // namespace weir::store::mysql
