#pragma once

#include <chrono>
#include <string>

#include "drivers/mysql/connection.h"
#include "store/sql/sweep_options.h"

namespace weir::store::mysql {

/// Deletes expired rows, one small part of the table after another, over and over. Several nodes
/// may do so at the same time: the second finds nothing, and rows in use are left alone.
///
/// Thread safety: belongs to one thread; Abort may be called from any.
class Sweeper {
 public:
  using Options = sql::SweepOptions;

  Sweeper(weir::mysql::ConnectionOptions connection, const Options& options);

  /// Checks the next part, or raises the mark; returns how long to wait before the next call.
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
