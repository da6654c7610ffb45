#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "drivers/postgres/worker.h"
#include "notify/postgres/gateway.h"
#include "notify/postgres/transaction.h"

namespace weir::notify::postgres {

/// Schedules requests on the gateway's connections: a user's requests wait while a transaction has
/// the user; when a connection is free, a transaction takes all users that are free.
///
/// Thread-safe: Post may be called from any thread; the rest on the worker's own only.
class PostgresGateway::Worker : public std::enable_shared_from_this<Worker> {
 public:
  Worker(Options options, Publisher& publisher, const Clock& clock);
  /// Call it once, before anything else.
  void Open();
  /// Answers all waiting calls with kUnavailable, and ends the thread.
  void Close();

  /// May be called from any thread. After Close, tasks are dropped.
  void Post(std::function<void()> task);

  void Enqueue(Ask ask);
  /// Runs a statement as a transaction of its own.
  void Run(const char* sql, weir::postgres::Params params, weir::postgres::Connection::Done done);
  /// The same on the connection for statements that wait for locks.
  void RunLocking(const char* sql, weir::postgres::Params params,
                  weir::postgres::Connection::Done done);
  /// Runs a statement in one of these ways, but from any thread; `done` gets the result of `read`
  /// on the rows.
  template <typename T, typename Read>
  void Query(void (Worker::*way)(const char*, weir::postgres::Params,
                                 weir::postgres::Connection::Done),
             const char* sql, weir::postgres::Params params, std::function<void(Result<T>)> done,
             Read read) {
    Post([this, way, sql, params = std::move(params), done = std::move(done), read]() mutable {
      (this->*way)(sql, std::move(params),
                   [done = std::move(done), read](const weir::postgres::Answer& answer) {
                     if (!answer.status.ok()) return done(Unavailable(answer));
                     done(read(answer.rows));
                   });
    });
  }
  /// BEGIN, bounds, the statements, COMMIT: all or nothing.
  void RunTogether(std::vector<std::pair<const char*, weir::postgres::Params>> statements,
                   std::function<void(Status)> done);

  std::size_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  const Clock& clock() const noexcept { return parts_->clock; }

 private:
  struct Waiting {
    Ask ask;
    std::chrono::steady_clock::time_point since;
  };
  struct User {
    std::deque<Waiting> waiting;
    bool busy = false;  // a transaction has it
  };
  using Users = std::unordered_map<std::string, User>;

  Status EnsureTables();
  void Pump();
  std::vector<Ask> TakeBatch(std::vector<std::string>& users);
  void Release(weir::postgres::Connection* connection, const std::vector<std::string>& users);
  void Answer(const Waiting& waiting, Error error);
  /// After a pause.
  void Sweep(std::chrono::milliseconds pause);

  const Options options_;
  const std::shared_ptr<TransactionParts> parts_;
  weir::postgres::Worker worker_;
  IoThread::Timer sweep_timer_;
  std::vector<weir::postgres::Connection*> idle_;
  weir::postgres::Connection& reads_;
  weir::postgres::Connection& locking_;
  Users users_;
  std::deque<std::string> ready_;  // users with waiting requests and no transaction
  std::atomic<std::size_t> waiting_{0};
};

}  // namespace weir::notify::postgres
