#include "notify/sqlite/gateway.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "drivers/sqlite/valued.h"
#include "notify/message.h"
#include "notify/sqlite/away.h"
#include "notify/sqlite/batch.h"
#include "notify/sqlite/sql.h"

namespace weir::notify::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Database;
using weir::sqlite::ReadFor;
using weir::sqlite::WriteFor;

constexpr Micros kSweepInterval = kMicrosPerMinute;

/// `how`: kPutLimit, kAdjustLimit or kEnsureLimit.
Status PutLimit(Connection& connection, const char* how, const UserLimit& limit) {
  return connection.Run(how, limit.user_id, limit.rate_limit, limit.time_window,
                        limit.last_refresh_time);
}

Result<bool> RemoveLimit(Connection& connection, const std::string& user_id) {
  if (Status s = connection.Run(kRemoveLimit, user_id); !s.ok()) return s.error();
  return connection.changes() > 0;
}

}  // namespace

struct SqliteGateway::Job {
  std::vector<Waiting> taken;
  std::vector<Result<SendAnswer>> answers;
  std::size_t stored = 0;
  bool more = false;  // not all requests fitted
};

Result<std::unique_ptr<SqliteGateway>> SqliteGateway::Open(Database& database, const Clock& clock,
                                                           Options options,
                                                           std::function<void()> on_event) {
  if (Status s = database.Migrate("notify", Migrations()); !s.ok()) return s.error();
  std::unique_ptr<SqliteGateway> gateway(
      new SqliteGateway(database, clock, options, std::move(on_event)));
  Status counted = database.Read([&](Connection& connection) -> Status {
    Result<std::int64_t> count = connection.ReadNumber(kCountOutbox);
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
  // Jobs run in order, so after this one none of the gateway's are left.
  static_cast<void>(database_.WriteAndWait([](Connection&) -> Status { return {}; }));
}

void SqliteGateway::Configure(UserLimit limit, Done<UserLimit> done) {
  limit.current_count = 0;
  WriteFor<UserLimit>(
      database_, OrAway(std::move(done)),
      [this](Connection& connection, UserLimit stored) -> Result<UserLimit> {
        stored.last_refresh_time = NowMicros(clock_);
        if (Status s = PutLimit(connection, kPutLimit, stored); !s.ok()) return s.error();
        return stored;
      },
      std::move(limit));
}

void SqliteGateway::Adjust(UserLimit limit, Done<UserLimit> done) {
  WriteFor<UserLimit>(
      database_, OrAway(std::move(done)),
      [this](Connection& connection, UserLimit wanted) -> Result<UserLimit> {
        wanted.last_refresh_time = NowMicros(clock_);
        if (Status s = PutLimit(connection, kAdjustLimit, wanted); !s.ok()) return s.error();
        Result<std::optional<UserLimit>> stored = ReadLimit(connection, wanted.user_id);
        if (!stored.ok()) return stored.error();
        return stored->value_or(wanted);
      },
      std::move(limit));
}

void SqliteGateway::Ensure(UserLimit limit, Done<bool> done) {
  WriteFor<bool>(
      database_, OrAway(std::move(done)),
      [this](Connection& connection, UserLimit stored) -> Result<bool> {
        stored.last_refresh_time = NowMicros(clock_);
        if (Status s = PutLimit(connection, kEnsureLimit, stored); !s.ok()) return s.error();
        return connection.changes() > 0;
      },
      std::move(limit));
}

void SqliteGateway::Remove(std::string user_id, Done<bool> done) {
  WriteFor(database_, OrAway(std::move(done)), RemoveLimit, std::move(user_id));
}

void SqliteGateway::Find(std::string user_id, Done<std::optional<UserLimit>> done) {
  ReadFor(database_, OrAway(std::move(done)), ReadLimit, std::move(user_id));
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
    // The job was refused before it ran: fail the requests that it would have taken.
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
      job.taken[i].done(Away(status.error()));
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
  next_sweep_ = std::min(next_sweep_, now + kSweepInterval);  // the clock may be set back
  if (now < next_sweep_) return {};
  next_sweep_ = now + kSweepInterval;
  bool more = false;
  const auto sweep = [&](const char* sql, Micros oldest) {
    Status swept = connection.Run(sql, oldest, kSweepSet);
    more = more || connection.changes() == kSweepSet;
    return swept;
  };
  if (Status s = sweep(kSweepKeys, now - kKeyLifetime); !s.ok()) return s;
  Status swept = sweep(kSweepMessages, now - kMessageLifetime);
  // What comes in must not outrun it.
  if (more) next_sweep_ = now + std::chrono::microseconds(kSweepPause).count();
  return swept;
}

}  // namespace weir::notify::sqlite
