#include "notify/postgres/worker.h"

#include <algorithm>
#include <utility>

#include "notify/postgres/sql.h"

namespace weir::notify::postgres {
namespace {

constexpr std::chrono::seconds kMigrateTimeout{3};
constexpr std::chrono::milliseconds kSweepInterval{60'000};

using weir::postgres::Connection;
using weir::postgres::Params;

std::size_t TransactionsOf(const Options& options) {
  return std::max<std::size_t>(options.connections, 1);
}

weir::postgres::WorkerOptions WorkerOptionsOf(const Options& options) {
  return {.connection = {.url = options.url,
                         .connect_timeout = options.statement_timeout,
                         .statement_timeout = options.statement_timeout,
                         .reconnect_delay = std::chrono::milliseconds(50)},
          .connections = TransactionsOf(options) + 2,
          .component = "notify",
          .steps = Migrations(),
          .migrate_timeout = kMigrateTimeout};
}

}  // namespace

PostgresGateway::Worker::Worker(Options options, Publisher& publisher, const Clock& clock)
    : options_(std::move(options)),
      parts_(std::make_shared<TransactionParts>(TransactionParts{options_, publisher, clock})),
      worker_(WorkerOptionsOf(options_)),
      sweep_timer_(worker_.io()),
      reads_(worker_.connection(TransactionsOf(options_))),
      locking_(worker_.connection(TransactionsOf(options_) + 1)) {
  for (std::size_t i = 0; i < TransactionsOf(options_); ++i) {
    idle_.push_back(&worker_.connection(i));
  }
}

void PostgresGateway::Worker::Open() {
  parts_->post = [weak = weak_from_this()](std::function<void()> task) {
    if (const auto self = weak.lock()) self->worker_.Post(std::move(task));
  };
  Sweep(kSweepInterval);
  worker_.Start();
}

void PostgresGateway::Worker::Close() {
  worker_.Close([this] {
    parts_->closed = true;
    sweep_timer_.cancel();
    const Error closing{Code::kUnavailable, "the gateway is closing"};
    for (auto& [name, user] : users_) {
      for (const Waiting& waiting : user.waiting) Answer(waiting, closing);
      user.waiting.clear();
    }
    ready_.clear();
  });
}

void PostgresGateway::Worker::Post(std::function<void()> task) { worker_.Post(std::move(task)); }

Status PostgresGateway::Worker::EnsureTables() {
  if (parts_->closed) return Error{Code::kUnavailable, "the gateway is closing"};
  const Status made = worker_.Ready();
  if (made.ok()) return made;
  return Error{Code::kUnavailable,
               "PostgreSQL is temporarily unavailable: " + made.error().message};
}

void PostgresGateway::Worker::Enqueue(Ask ask) {
  if (Status ready = EnsureTables(); !ready.ok()) return ask.done(ready.error());
  if (waiting_ >= options_.max_waiting) {
    return ask.done(Error{Code::kUnavailable, "too many sends are waiting; try again"});
  }
  waiting_.fetch_add(1, std::memory_order_relaxed);
  const std::string& name = ask.request.user_id;
  User& user = users_[name];
  if (user.waiting.empty() && !user.busy) ready_.push_back(name);
  user.waiting.push_back({std::move(ask), std::chrono::steady_clock::now()});
  // Posted, so that requests that arrive in the same turn of the reactor go along.
  if (ready_.size() == 1 && !idle_.empty()) Post([this] { Pump(); });
}

void PostgresGateway::Worker::Pump() {
  while (!parts_->closed && !idle_.empty() && !ready_.empty()) {
    std::vector<std::string> users;
    std::vector<Ask> asks = TakeBatch(users);
    if (asks.empty()) continue;
    Connection* const connection = idle_.back();
    idle_.pop_back();
    std::make_shared<Transaction>(
        parts_, *connection, std::move(asks),
        [this, connection, users = std::move(users)] { Release(connection, users); })
        ->Start();
  }
}

std::vector<Ask> PostgresGateway::Worker::TakeBatch(std::vector<std::string>& users) {
  std::vector<Ask> asks;
  const auto oldest = std::chrono::steady_clock::now() - options_.max_wait;
  while (!ready_.empty() && asks.size() < options_.max_batch) {
    const auto found = users_.find(ready_.front());
    ready_.pop_front();
    User& user = found->second;
    const std::size_t before = asks.size();
    while (!user.waiting.empty() && asks.size() < options_.max_batch) {
      Waiting waiting = std::move(user.waiting.front());
      user.waiting.pop_front();
      if (waiting.since < oldest) {
        Answer(waiting, {Code::kUnavailable, "PostgreSQL is temporarily unavailable: timed out"});
      } else {
        waiting_.fetch_sub(1, std::memory_order_relaxed);
        asks.push_back(std::move(waiting.ask));
      }
    }
    if (asks.size() == before) {
      users_.erase(found);
      continue;
    }
    user.busy = true;
    users.push_back(found->first);
  }
  return asks;
}

void PostgresGateway::Worker::Release(Connection* connection,
                                      const std::vector<std::string>& users) {
  if (parts_->closed) return;
  idle_.push_back(connection);
  for (const std::string& name : users) {
    const auto found = users_.find(name);
    found->second.busy = false;
    if (found->second.waiting.empty()) {
      users_.erase(found);
    } else {
      ready_.push_back(name);
    }
  }
  Post([this] { Pump(); });
}

void PostgresGateway::Worker::Answer(const Waiting& waiting, Error error) {
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  waiting.ask.done(std::move(error));
}

void PostgresGateway::Worker::Run(const char* sql, Params params, Connection::Done done) {
  if (Status ready = EnsureTables(); !ready.ok()) return done({.status = ready.error()});
  reads_.Send(sql, std::move(params), std::move(done));
}

void PostgresGateway::Worker::RunLocking(const char* sql, Params params, Connection::Done done) {
  if (Status ready = EnsureTables(); !ready.ok()) return done({.status = ready.error()});
  locking_.Send(sql, std::move(params), std::move(done));
}

void PostgresGateway::Worker::RunTogether(std::vector<std::pair<const char*, Params>> statements,
                                          std::function<void(Status)> done) {
  if (Status ready = EnsureTables(); !ready.ok()) return done(ready.error());
  struct Progress {
    std::function<void(Status)> done;
    std::size_t left;
    Status status;
  };
  auto progress =
      std::make_shared<Progress>(Progress{std::move(done), statements.size() + 3, Status()});
  const auto take = [progress](weir::postgres::Answer answer) {
    if (!answer.status.ok() && progress->status.ok()) progress->status = Unavailable(answer);
    if (--progress->left == 0) progress->done(progress->status);
  };
  locking_.Send("BEGIN", {}, take);
  locking_.Send(kBounds,
                std::move(Params()
                              .Text(std::to_string(options_.lock_timeout.count()))
                              .Text(std::to_string(options_.statement_timeout.count()))),
                take);
  for (auto& statement : statements) {
    locking_.Send(statement.first, std::move(statement.second), take);
  }
  // If the transaction has failed, this is a rollback.
  locking_.Send("COMMIT", {}, take);
}

// As long as there is a whole set, another follows: what comes in must not outrun it.
void PostgresGateway::Worker::Sweep(std::chrono::milliseconds pause) {
  sweep_timer_.expires_after(pause);
  sweep_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || parts_->closed) return;
    if (!worker_.tables_made()) return Sweep(kSweepInterval);
    const Micros now = NowMicros(parts_->clock);
    auto more = std::make_shared<bool>(false);
    const auto take = [more](const weir::postgres::Answer& answer) {
      *more = *more || (answer.status.ok() && answer.rows.affected() == kSweepSet);
    };
    reads_.Send(kSweepKeys, std::move(Params().Int(now - kKeyLifetime).Int(kSweepSet)), take);
    reads_.Send(kSweepMessages, std::move(Params().Int(now - kMessageLifetime).Int(kSweepSet)),
                [this, more, take](const weir::postgres::Answer& answer) {
                  take(answer);
                  if (!parts_->closed) Sweep(*more ? kSweepPause : kSweepInterval);
                });
  });
}

}  // namespace weir::notify::postgres
