#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "drivers/postgres/connection.h"
#include "store/sql/lane_parts.h"

namespace weir::store::postgres {

/// One connection, and the transaction that is under way on it. Two round trips each:
///   (rows that may be missing are created, in a transaction of their own,) begin, lock and read;
///   write and commit.
/// A transaction that the server rolled back, or that was lost before the commit was sent, is
/// retried. One that was lost later may have been committed, so it is answered with an error.
///
/// Thread safety: belongs to the thread that runs the connection.
class Lane {
 public:
  Lane(boost::asio::io_context& io, weir::postgres::ConnectionOptions options,
       const sql::LaneParts& parts);
  /// Answers what is under way with kUnavailable.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  bool free() const noexcept { return batch_ == nullptr; }
  /// Takes work if there is some, and goes on for as long as there is. Requires free().
  void Start();

 private:
  using Answer = weir::postgres::Answer;

  void Begin();
  void OnLocked(Answer answer);
  void OnWritten(Answer written, const Answer& committed);
  void Retry(const Answer& answer);
  void Finish(const Status& status);
  std::uint64_t HashOf(const sql::Batch::Row& row) const;

  const sql::LaneParts parts_;
  std::unique_ptr<sql::Batch> batch_;
  std::vector<std::string_view> ids_;
  int attempts_ = 0;
  bool create_all_ = false;
  weir::postgres::Connection connection_;  // last: its callbacks use the members above
};

}  // namespace weir::store::postgres
