#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "drivers/postgres/connection.h"
#include "drivers/postgres/migration.h"
#include "slots/postgres/slot_store.h"

namespace weir::slots::postgres {

/// The store's thread, its connections, and the one way to run a statement: migrate first if that
/// is still to be done, try again when trying again is safe and may help.
///
/// Thread-safe: Post from any thread; the rest on the worker's own.
class PostgresSlotStore::Worker {
 public:
  using Done = std::function<void(weir::postgres::Answer)>;

  explicit Worker(Options options);
  ~Worker();

  void Post(std::function<void()> task);

  /// Runs an idempotent statement. Lost connections, deadlocks and the like are tried again a few
  /// times, with the least busy connection.
  void Run(std::string_view sql, weir::postgres::Params params, Done done);
  /// Runs a statement that must not run twice.
  void RunOnce(std::string_view sql, weir::postgres::Params params, Done done);
  /// The same on the connection for long reads, once.
  void RunLong(std::string_view sql, weir::postgres::Params params, Done done);

 private:
  struct Attempt;
  void Try(const std::shared_ptr<Attempt>& attempt);
  weir::postgres::Connection& LeastBusy();

  const Options options_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::vector<std::unique_ptr<weir::postgres::Connection>> connections_;
  std::unique_ptr<weir::postgres::Connection> long_reads_;
  bool closing_ = false;
  // Blocks this thread; nothing can be done here without the tables anyway.
  weir::postgres::TablesOnFirstUse tables_;
  std::thread thread_;
};

}  // namespace weir::slots::postgres
