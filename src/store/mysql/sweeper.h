#pragma once

#include <chrono>
#include <string>

#include "drivers/mysql/connection.h"
#include "weir/clock.h"

namespace weir::store::mysql {

/// Deletes rows that have expired, a small part of the table after the other, round and round.
/// Several nodes may do so at once: who comes second finds nothing, and rows in use are left alone.
///
/// Thread safety: belongs to one thread; Abort may be called from any.
class Sweeper {
 public:
  struct Options {
    std::chrono::milliseconds interval{500};
    std::chrono::milliseconds grace{60'000};
    const Clock* clock = nullptr;
  };

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
