#include "store/mysql/sweeper.h"

#include <algorithm>
#include <utility>

#include "drivers/mysql/error.h"
#include "store/mysql/sql.h"

namespace weir::store::mysql {
namespace {

using weir::mysql::Answer;
using weir::mysql::AppendLiteral;

constexpr int kPart = 1000;  // rows examined per statement
constexpr std::chrono::milliseconds kShortly{20};

}  // namespace

Sweeper::Sweeper(weir::mysql::ConnectionOptions connection, const Options& options)
    : options_(options), connection_(std::move(connection)), mark_(options.watcher) {}

std::chrono::milliseconds Sweeper::Step() {
  if (!options_.watcher.lost || !mark_.Due()) return Sweep();
  RaiseMark();
  return options_.interval;
}

void Sweeper::RaiseMark() {
  std::string id;
  AppendLiteral(id, sql::kMarkId);
  std::string sql = "INSERT INTO weir_limits(id, state, fresh_at) VALUES (" + id + ",";
  AppendLiteral(sql, sql::Mark::NewState());
  sql += "," + std::to_string(sql::kFirstMark) +
         ") ON DUPLICATE KEY UPDATE fresh_at = fresh_at + 1;"
         "SELECT state, fresh_at FROM weir_limits WHERE id = " +
         id;
  Answer raised = connection_.Run(sql);
  if (raised.status.ok() && raised.results.size() == 2 && raised.results[1].Next()) {
    mark_.Take(raised.results[1].Text(0), raised.results[1].Int(1));
  } else if (!raised.status.ok() && raised.error != weir::mysql::kNoSuchTable) {
    mark_.Fail(raised.status.error());  // a lane recreates a missing table, without the mark
  }
}

std::chrono::milliseconds Sweeper::Sweep() {
  // Read without locks first; rows that seem to have expired are locked and checked again.
  std::string sql = "SELECT id, fresh_at FROM weir_limits FORCE INDEX (PRIMARY) WHERE id > ";
  AppendLiteral(sql, after_);
  sql += " ORDER BY id LIMIT " + std::to_string(kPart) + ";";
  sql += kReadClock;
  Answer looked = connection_.Run(sql);
  // A failure is not retried immediately: the next round finds the same rows.
  if (!looked.status.ok() || looked.results.size() != 2 || !looked.results[1].Next()) {
    return options_.interval;
  }
  const Nanos grace = std::chrono::nanoseconds(options_.grace).count();
  const Nanos now =
      options_.clock != nullptr ? options_.clock->Now() : looked.results[1].Int(0) * 1000;
  std::string stale;
  int rows = 0;
  int expired = 0;
  while (looked.results[0].Next()) {
    ++rows;
    after_ = looked.results[0].Text(0);
    if (looked.results[0].Int(1) > now - grace) continue;
    if (expired++ > 0) stale += ',';
    AppendLiteral(stale, looked.results[0].Text(0));
  }
  if (rows < kPart) after_.clear();
  if (expired == 0) return options_.interval;
  // Rows that are in use are skipped: waiting for them would hold up those already locked.
  sql = std::string(connection_.begin()) +
        ";SELECT id FROM weir_limits FORCE INDEX (PRIMARY) WHERE id IN (" + stale +
        ") AND fresh_at <= " + std::to_string(now - grace) + " ORDER BY id FOR UPDATE SKIP LOCKED";
  Answer locked = connection_.Run(sql);
  std::string gone;
  if (locked.status.ok() && !locked.results.empty()) {
    while (locked.results.back().Next()) {
      if (!gone.empty()) gone += ',';
      AppendLiteral(gone, locked.results.back().Text(0));
    }
  }
  const std::string end = gone.empty() ? std::string(connection_.rollback())
                                       : "DELETE FROM weir_limits WHERE id IN (" + gone + ");" +
                                             std::string(connection_.commit());
  if (const Answer ended = connection_.Run(end, connection_.session()); !ended.status.ok()) {
    (void)connection_.Run(connection_.rollback(), connection_.session());
  }
  return expired * 4 >= kPart ? std::min(kShortly, options_.interval) : options_.interval;
}

}  // namespace weir::store::mysql
