#include "store/mysql/lane.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "drivers/mysql/error.h"
#include "store/mysql/schema.h"
#include "store/mysql/sql.h"

namespace weir::store::mysql {
namespace {

using weir::mysql::Answer;

constexpr int kAttempts = 5;
constexpr int kAttemptsWhenLost = 2;

}  // namespace

Lane::Lane(weir::mysql::ConnectionOptions options, const sql::LaneParts& parts)
    : parts_(parts), connection_(std::move(options)) {}

void Lane::Work() {
  while (std::unique_ptr<sql::Batch> batch = parts_.combiner.Take()) {
    const Status status = RunBatch(*batch);
    parts_.combiner.Finish(std::move(batch), status);
  }
}

std::uint64_t Lane::HashOf(const sql::Batch::Row& row) const {
  return parts_.combiner.hash()(row.key).high;
}

Status Lane::RunBatch(sql::Batch& batch) {
  bool create_all = false;
  for (int attempt = 1;; ++attempt) {
    batch.Restart();
    const Outcome outcome = Attempt(batch, create_all);
    if (!outcome.again) return outcome.status;
    const bool lost = weir::mysql::IsLost(outcome.error);
    if (attempt >= (lost ? kAttemptsWhenLost : kAttempts)) return outcome.status;
    create_all = create_all || outcome.error == 0;
    if (outcome.error != weir::mysql::kNoSuchTable) continue;
    if (!parts_.create) return outcome.status;
    if (Status created = parts_.create(); !created.ok()) return created;
  }
}

Lane::Outcome Lane::Attempt(sql::Batch& batch, bool create_all) {
  if (const Answer ready = connection_.Ready(); !ready.status.ok()) return Undone(ready);
  std::vector<std::string_view> ids;
  std::vector<std::string_view> unknown;
  for (const sql::Batch::Row& row : batch.rows()) {
    ids.emplace_back(row.id);
    if (row.charged && (create_all || !parts_.known.Has(HashOf(row)))) unknown.emplace_back(row.id);
  }
  sql_.clear();
  if (!unknown.empty()) {
    AppendCreateRows(sql_, unknown, parts_.clock);
    sql_ += ';';
  }
  sql_ += connection_.begin();
  sql_ += ';';
  AppendLockRows(sql_, ids);
  sql_ += ';';
  sql_ += kReadClock;
  Answer answer = connection_.Run(sql_);
  if (!answer.status.ok()) return Undone(answer);
  Nanos now = 0;
  if (!Load(batch, answer, now)) {
    // Some were swept, or never existed.
    (void)connection_.Run(connection_.rollback(), connection_.session());
    return {Error{Code::kUnavailable, "mysql: rows disappear as they are inserted"}, 0, true};
  }
  batch.Run(parts_.clock != nullptr ? parts_.clock->Now() : now);
  return Write(batch);
}

// The rows and the time are the last two results; those before them vary.
bool Lane::Load(sql::Batch& batch, Answer& answer, Nanos& now) {
  if (answer.results.size() < 2) return false;
  weir::mysql::Rows& rows = *(answer.results.end() - 2);
  weir::mysql::Rows& clock = answer.results.back();
  while (rows.Next()) batch.Load(rows.Text(0), rows.Text(1));
  if (!batch.FinishLoading() || !clock.Next()) return false;
  now = clock.Int(0) * 1000;
  for (const sql::Batch::Row& row : batch.rows()) {
    if (!row.absent) parts_.known.Add(HashOf(row));
  }
  return true;
}

Lane::Outcome Lane::Write(const sql::Batch& batch) {
  std::span<const sql::Batch::Write> left = batch.writes();
  const std::uint64_t session = connection_.session();
  if (left.empty()) {
    // Decided under the locks; how this transaction ends changes nothing.
    (void)connection_.Run(connection_.commit(), session);
    return {};
  }
  // Nearly always one packet. Long logs may take several, of which the last one commits.
  for (sql_.clear(); !(left = AppendWriteRows(sql_, left)).empty(); sql_.clear()) {
    if (const Answer some = connection_.Run(sql_, session); !some.status.ok()) return Undone(some);
  }
  sql_ += ';';
  sql_ += connection_.commit();
  const Answer answer = connection_.Run(sql_, session);
  if (answer.status.ok()) return {};
  if (weir::mysql::IsLost(answer.error)) return {answer.status, answer.error, false};
  return Undone(answer);
}

// The server reported an error, or the connection was lost before COMMIT: nothing was written.
Lane::Outcome Lane::Undone(const Answer& answer) {
  const bool lost = weir::mysql::IsLost(answer.error);
  if (!lost) (void)connection_.Run(connection_.rollback(), connection_.session());
  const bool again =
      lost || weir::mysql::IsRetryable(answer.error) || answer.error == weir::mysql::kNoSuchTable;
  return {answer.status, answer.error, again};
}

}  // namespace weir::store::mysql
