#include "notify/sqlite/gateway.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "notify/message.h"
#include "notify/sqlite/batch.h"
#include "notify/sqlite/schema.h"

namespace weir::notify::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Database;
using weir::sqlite::Statement;

constexpr Micros kSweepInterval = kMicrosPerMinute;

Error Unavailable(const Error& error) {
  return {Code::kUnavailable, "the embedded database is temporarily unavailable: " + error.message};
}

Result<std::int64_t> CountOutbox(Connection& connection) {
  Result<Statement> query = connection.Prepare(
      "SELECT (SELECT count(*) FROM notify_outbox) + (SELECT count(*) FROM notify_delayed)");
  if (!query.ok()) return query.error();
  Result<bool> row = query->Step();
  if (!row.ok()) return row.error();
  return query->Int(0);
}

}  // namespace

struct SqliteGateway::Job {
  std::vector<Waiting> taken;
  std::vector<Result<SendAnswer>> answers;
  std::size_t stored = 0;
  bool more = false;  // it could not take all
};

Result<std::unique_ptr<SqliteGateway>> SqliteGateway::Open(Database& database, const Clock& clock,
                                                           Options options,
                                                           std::function<void()> on_event) {
  if (Status s = database.Migrate("notify", Migrations()); !s.ok()) return s.error();
  std::unique_ptr<SqliteGateway> gateway(
      new SqliteGateway(database, clock, options, std::move(on_event)));
  Status counted = database.Read([&](Connection& connection) -> Status {
    Result<std::int64_t> count = CountOutbox(connection);
    if (!count.ok()) return count.error();
    gateway->outbox_ = *count;
    return {};
  });
  if (!counted.ok()) return counted.error();
  return gateway;
}

SqliteGateway::SqliteGateway(Database& database, const Clock& clock, Options options,
                             std::function<void()> on_event)
    : database_(database), clock_(clock), options_(options), on_event_(std::move(on_event)) {}

void SqliteGateway::Close() {
  // Jobs run in order, so behind this one there is none of ours.
  static_cast<void>(database_.WriteAndWait([](Connection&) -> Status { return {}; }));
}

void SqliteGateway::Configure(UserLimit limit, Done<UserLimit> done) {
  auto stored = std::make_shared<UserLimit>(std::move(limit));
  database_.Write(
      [this, stored](Connection& connection) -> Status {
        stored->current_count = 0;
        stored->last_refresh_time = NowMicros(clock_);
        Result<Statement> put = connection.Prepare(
            "INSERT OR REPLACE INTO rate_limit_store(user_id, rate_limit, time_window, "
            "current_count, last_refresh_time) VALUES (?1, ?2, ?3, 0, ?4)");
        if (!put.ok()) return put.error();
        put->Bind(1, stored->user_id).Bind(2, stored->rate_limit).Bind(3, stored->time_window);
        return put->Bind(4, stored->last_refresh_time).Run();
      },
      [stored, done = std::move(done)](const Status& status) {
        if (!status.ok()) return done(Unavailable(status.error()));
        done(std::move(*stored));
      });
}

void SqliteGateway::Ensure(UserLimit limit, Done<bool> done) {
  auto made = std::make_shared<bool>(false);
  database_.Write(
      [this, limit = std::move(limit), made](Connection& connection) -> Status {
        Result<Statement> put = connection.Prepare(
            "INSERT OR IGNORE INTO rate_limit_store(user_id, rate_limit, time_window, "
            "current_count, last_refresh_time) VALUES (?1, ?2, ?3, 0, ?4)");
        if (!put.ok()) return put.error();
        put->Bind(1, limit.user_id).Bind(2, limit.rate_limit).Bind(3, limit.time_window);
        if (Status s = put->Bind(4, NowMicros(clock_)).Run(); !s.ok()) return s;
        *made = connection.changes() > 0;
        return {};
      },
      [made, done = std::move(done)](const Status& status) {
        if (!status.ok()) return done(Unavailable(status.error()));
        done(*made);
      });
}

void SqliteGateway::Remove(std::string user_id, Done<bool> done) {
  auto removed = std::make_shared<bool>(false);
  database_.Write(
      [user = std::move(user_id), removed](Connection& connection) -> Status {
        Result<Statement> remove =
            connection.Prepare("DELETE FROM rate_limit_store WHERE user_id = ?1");
        if (!remove.ok()) return remove.error();
        if (Status s = remove->Bind(1, user).Run(); !s.ok()) return s;
        *removed = connection.changes() > 0;
        return {};
      },
      [removed, done = std::move(done)](const Status& status) {
        if (!status.ok()) return done(Unavailable(status.error()));
        done(*removed);
      });
}

void SqliteGateway::Find(std::string user_id, Done<std::optional<UserLimit>> done) {
  auto found = std::make_shared<std::optional<UserLimit>>();
  database_.ReadLater(
      [user = std::move(user_id), found](Connection& connection) -> Status {
        Result<std::optional<UserLimit>> row = ReadLimit(connection, user);
        if (!row.ok()) return row.error();
        *found = std::move(*row);
        return {};
      },
      [found, done = std::move(done)](const Status& status) {
        if (!status.ok()) return done(Unavailable(status.error()));
        done(std::move(*found));
      });
}

void SqliteGateway::Send(SendRequest request, Done<SendAnswer> done) {
  if (waiting_.fetch_add(1, std::memory_order_relaxed) >= options_.max_waiting) {
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return done(Error{Code::kUnavailable, "too many sends are waiting; try again"});
  }
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(request), std::move(done)});
    if (job_queued_) return;
    job_queued_ = true;
  }
  Write();
}

void SqliteGateway::Write() {
  auto job = std::make_shared<Job>();
  database_.Write([this, job](Connection& connection) { return Run(connection, *job); },
                  [this, job](const Status& status) { Finish(*job, status); });
}

Status SqliteGateway::Run(Connection& connection, Job& job) {
  {
    const std::lock_guard lock(mutex_);
    const std::size_t count = std::min(queue_.size(), options_.max_batch);
    const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(count);
    job.taken.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
    queue_.erase(queue_.begin(), end);
    job.more = !queue_.empty();
    job_queued_ = job.more;
  }
  const Micros now = NowMicros(clock_);
  if (Status swept = SweepKeys(connection, now); !swept.ok()) return swept;
  std::vector<const SendRequest*> requests;
  requests.reserve(job.taken.size());
  for (const Waiting& waiting : job.taken) requests.push_back(&waiting.request);
  Batch batch(connection, now);
  Result<std::vector<Result<SendAnswer>>> answers =
      batch.Decide(requests, options_.max_outbox - std::min(outbox(), options_.max_outbox));
  if (!answers.ok()) return answers.error();
  job.answers = std::move(*answers);
  job.stored = batch.stored();
  return {};
}

void SqliteGateway::Finish(Job& job, const Status& status) {
  if (job.taken.empty() && !status.ok()) {
    // The job was refused before it ran: those who wait are those it would have taken.
    const std::lock_guard lock(mutex_);
    job.taken.swap(queue_);
    job_queued_ = false;
  }
  if (job.more) Write();
  waiting_.fetch_sub(job.taken.size(), std::memory_order_relaxed);
  if (status.ok() && job.stored > 0) {
    outbox_.fetch_add(static_cast<std::int64_t>(job.stored), std::memory_order_relaxed);
    on_event_();
  }
  for (std::size_t i = 0; i < job.taken.size(); ++i) {
    if (!status.ok()) {
      job.taken[i].done(Unavailable(status.error()));
    } else {
      job.taken[i].done(std::move(job.answers[i]));
    }
  }
}

std::size_t SqliteGateway::outbox() const noexcept {
  return static_cast<std::size_t>(
      std::max<std::int64_t>(outbox_.load(std::memory_order_relaxed), 0));
}

void SqliteGateway::Requeued(std::size_t events) noexcept {
  outbox_.fetch_add(static_cast<std::int64_t>(events), std::memory_order_relaxed);
}

void SqliteGateway::Delivered(std::size_t events) noexcept {
  outbox_.fetch_sub(static_cast<std::int64_t>(events), std::memory_order_relaxed);
}

Status SqliteGateway::SweepKeys(Connection& connection, Micros now) {
  if (now < next_sweep_) return {};
  next_sweep_ = now + kSweepInterval;
  Result<Statement> sweep = connection.Prepare(
      "DELETE FROM notify_key WHERE (user_id, key) IN (SELECT user_id, key FROM notify_key "
      "WHERE created_at <= ?1 LIMIT 20000)");
  if (!sweep.ok()) return sweep.error();
  if (Status s = sweep->Bind(1, now - kKeyLifetime).Run(); !s.ok()) return s;
  Result<Statement> old = connection.Prepare(
      "DELETE FROM notify_message WHERE event_id IN (SELECT event_id FROM notify_message "
      "WHERE state IN (2, 4) AND accepted_at <= ?1 LIMIT 20000)");
  if (!old.ok()) return old.error();
  return old->Bind(1, now - kMessageLifetime).Run();
}

}  // namespace weir::notify::sqlite
