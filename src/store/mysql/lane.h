#pragma once

#include <string>

#include "drivers/mysql/connection.h"
#include "store/sql/lane_parts.h"

namespace weir::store::mysql {

/// One connection that runs one transaction after another, with two round trips each:
///   (rows that may be missing are created, in a transaction of their own,) begin, lock and read;
///   write and commit.
/// A transaction that the server rolled back, or that was lost before the commit was sent, is
/// retried. One that was lost later may have been committed, so it is answered with an error.
///
/// Thread safety: belongs to one thread; Abort may be called from any.
class Lane {
 public:
  Lane(weir::mysql::ConnectionOptions options, const sql::LaneParts& parts);

  /// Runs transactions for as long as there is work.
  void Work();
  void Abort() noexcept { connection_.Abort(); }

 private:
  /// The result of one attempt.
  struct Outcome {
    Status status;
    unsigned error = 0;
    bool again = false;  ///< nothing was written, and another attempt may succeed
  };

  Status RunBatch(sql::Batch& batch);
  Outcome Attempt(sql::Batch& batch, bool create_all);
  bool Load(sql::Batch& batch, weir::mysql::Answer& answer, Nanos& now);
  Outcome Write(const sql::Batch& batch);
  Outcome Undone(const weir::mysql::Answer& answer);
  std::uint64_t HashOf(const sql::Batch::Row& row) const;

  const sql::LaneParts parts_;
  weir::mysql::Connection connection_;
  std::string sql_;
};

}  // namespace weir::store::mysql
