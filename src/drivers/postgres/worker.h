#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drivers/io_thread.h"
#include "drivers/postgres/connection.h"
#include "drivers/postgres/migration.h"
#include "drivers/postgres/params.h"
#include "weir/result.h"

namespace weir::postgres {

struct WorkerOptions {
  ConnectionOptions connection = {};  ///< of each of them
  std::size_t connections = 1;
  /// Whose tables are created before the first statement, and how.
  std::string component = {};
  std::span<const char* const> steps = {};
  std::chrono::seconds migrate_timeout{5};
  /// For statements on a connection of its own, for long reads; 0: there is none.
  std::chrono::milliseconds long_timeout{0};
};

/// A component's thread, its connections, and the one way to run a statement: create the tables
/// first if that is still to be done, try again when that is safe and may help.
///
/// Thread-safe: Post from any thread; the rest on the worker's own, except for Start and Close,
/// which are its owner's.
class Worker {
 public:
  using Done = std::function<void(Answer)>;

  explicit Worker(WorkerOptions options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Start() { thread_.Start(); }
  /// Runs `last` on the thread, closes the connections, so that pending statements get
  /// kUnavailable, and ends the thread.
  void Close(std::function<void()> last = nullptr);

  template <typename Task>
  void Post(Task task) {
    thread_.Post(std::move(task));
  }

  /// Not ok while the tables cannot be created, and when it closes. May block, until it succeeded
  /// once: nothing can be done without the tables anyway.
  Status Ready();
  bool tables_made() const noexcept { return tables_.made(); }

  /// Runs an idempotent statement. After lost connections, deadlocks and the like it is tried again
  /// a few times, on the least busy connection.
  void Run(std::string_view sql, Params params, Done done);
  /// Runs a statement that must not run twice.
  void RunOnce(std::string_view sql, Params params, Done done);
  /// Runs a change that would be answered differently if it were repeated. It is tried again only
  /// if it has certainly not taken effect; kDeadlineExceeded, with advice, if that is unknown.
  void RunChange(std::string_view sql, Params params, Done done);
  /// Likewise, once, on the connection for long reads. Requires long_timeout.
  void RunLongChange(std::string_view sql, Params params, Done done);
  /// Like RunOnce on the connection for long reads. Requires long_timeout.
  void RunLong(std::string_view sql, Params params, Done done);

  /// Runs a statement in one of these ways, but from any thread; `done` gets what `read` returns
  /// for the rows, on the worker's thread.
  template <typename T, typename Read>
  void Ask(void (Worker::*way)(std::string_view, Params, Done), std::string sql, Params params,
           std::function<void(Result<T>)> done, Read read) {
    Post([this, way, sql = std::move(sql), params = std::move(params), done = std::move(done),
          read = std::move(read)]() mutable {
      (this->*way)(sql, std::move(params),
                   [done = std::move(done), read = std::move(read)](const Answer& answer) mutable {
                     if (!answer.status.ok()) return done(answer.status.error());
                     done(read(answer.rows));
                   });
    });
  }

  /// For callers that distribute the connections themselves. Requires number < connections.
  Connection& connection(std::size_t number) { return *connections_[number]; }
  boost::asio::io_context& io() noexcept { return thread_.io(); }

 private:
  struct Attempt;
  void Begin(std::string_view sql, Params params, Done done, bool change);
  void Try(const std::shared_ptr<Attempt>& attempt);
  Connection& LeastBusy();

  IoThread thread_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::unique_ptr<Connection> long_reads_;
  bool closing_ = false;
  TablesOnFirstUse tables_;
};

}  // namespace weir::postgres
