#include "store/postgres/lane.h"

#include <algorithm>
#include <utility>

#include "drivers/postgres/sqlstate.h"
#include "store/postgres/schema.h"
#include "store/postgres/sql.h"

namespace weir::store::postgres {
namespace {

using weir::postgres::Connection;
using weir::postgres::Params;

constexpr int kAttempts = 5;
constexpr const char* kBegin = "BEGIN ISOLATION LEVEL READ COMMITTED";

// PostgreSQL counts microseconds since 2000-01-01.
Nanos ToNanos(std::int64_t timestamp) {
  constexpr std::int64_t kEpoch = 946'684'800'000'000;
  return (timestamp + kEpoch) * 1000;
}

void Ignore(weir::postgres::Answer) {}

}  // namespace

Lane::Lane(boost::asio::io_context& io, weir::postgres::ConnectionOptions options,
           const sql::LaneParts& parts)
    : parts_(parts), connection_(io, std::move(options)) {}

Lane::~Lane() {
  if (batch_ == nullptr) return;
  parts_.combiner.Finish(std::move(batch_),
                         Error{Code::kUnavailable, "postgres: the store was closed"});
}

void Lane::Start() {
  batch_ = parts_.combiner.Take();
  if (batch_ == nullptr) return;
  ids_.clear();
  for (const sql::Batch::Row& row : batch_->rows()) ids_.emplace_back(row.id);
  attempts_ = 0;
  create_all_ = false;
  Begin();
}

std::uint64_t Lane::HashOf(const sql::Batch::Row& row) const {
  return parts_.combiner.hash()(row.key).high;
}

void Lane::Begin() {
  ++attempts_;
  batch_->Restart();
  std::vector<std::string_view> unknown;
  for (const sql::Batch::Row& row : batch_->rows()) {
    if (row.charged && (create_all_ || !parts_.known.Has(HashOf(row)))) {
      unknown.emplace_back(row.id);
    }
  }
  if (!unknown.empty()) {
    Params params;
    params.BytesArray(unknown);
    if (parts_.clock != nullptr) {
      params.Int(parts_.clock->Now());
    } else {
      params.Null();
    }
    // If it fails, so will the next statement, which reports why.
    connection_.Send(kCreateRows, std::move(params), Ignore);
  }
  std::vector<Connection::Query> group;
  group.push_back({kBegin, {}, Ignore});
  group.push_back({kLockRows, Params().BytesArray(ids_),
                   [this](Answer answer) { OnLocked(std::move(answer)); }});
  connection_.SendGroup(std::move(group));
}

void Lane::OnLocked(Answer answer) {
  if (batch_ == nullptr) return;  // this lane is being destroyed
  if (!answer.status.ok()) return Retry(answer);
  std::int64_t latest = 0;
  for (int i = 0; i < answer.rows.size(); ++i) {
    latest = std::max(latest, answer.rows.Int(i, 2));
    const bool is_row = i + 1 < answer.rows.size();  // the last has only the time
    if (is_row) batch_->Load(answer.rows.Text(i, 0), answer.rows.Text(i, 1));
  }
  if (!batch_->FinishLoading()) {
    // Some were swept, or never existed.
    create_all_ = true;
    connection_.Send("ROLLBACK", {}, Ignore);
    if (attempts_ >= kAttempts) {
      return Finish(Error{Code::kUnavailable, "postgres: rows disappear as they are inserted"});
    }
    return Begin();
  }
  for (const sql::Batch::Row& row : batch_->rows()) {
    if (!row.absent) parts_.known.Add(HashOf(row));
  }
  batch_->Run(parts_.clock != nullptr ? parts_.clock->Now() : ToNanos(latest));
  if (batch_->writes().empty()) {
    // Decided under the locks; how this transaction ends makes no difference.
    connection_.Send("COMMIT", {}, Ignore);
    return Finish({});
  }
  std::vector<std::string_view> ids;
  std::vector<std::string_view> states;
  std::vector<std::int64_t> fresh;
  for (const sql::Batch::Write& write : batch_->writes()) {
    ids.push_back(write.id);
    states.emplace_back(write.state);
    fresh.push_back(write.fresh_at);
  }
  auto written = std::make_shared<Answer>();
  std::vector<Connection::Query> group;
  group.push_back({kWriteRows, Params().BytesArray(ids).BytesArray(states).IntArray(fresh),
                   [written](Answer wrote) { *written = std::move(wrote); }});
  group.push_back({"COMMIT", {}, [this, written](const Answer& committed) {
                     OnWritten(std::move(*written), committed);
                   }});
  connection_.SendGroup(std::move(group), connection_.session());
}

void Lane::OnWritten(Answer written, const Answer& committed) {
  if (batch_ == nullptr) return;
  // With an SQLSTATE, the server guarantees that nothing was written.
  if (!written.status.ok() && !written.sqlstate.empty()) return Retry(written);
  if (written.status.ok() && committed.status.ok()) return Finish({});
  Finish(written.status.ok() ? committed.status : written.status);
}

void Lane::Retry(const Answer& answer) {
  if (!answer.sqlstate.empty()) connection_.Send("ROLLBACK", {}, Ignore);
  if (attempts_ < kAttempts && answer.sqlstate == kUndefinedTable && parts_.create) {
    if (Status created = parts_.create(); !created.ok()) return Finish(created);
    return Begin();
  }
  const bool lost = answer.sqlstate.empty() || answer.sqlstate.starts_with("57P");
  const int attempts = lost ? 2 : kAttempts;
  if (attempts_ < attempts && (lost || weir::postgres::IsRetryable(answer.sqlstate))) {
    return Begin();
  }
  Finish(answer.status);
}

void Lane::Finish(const Status& status) {
  parts_.combiner.Finish(std::move(batch_), status);
  Start();
}

}  // namespace weir::store::postgres
