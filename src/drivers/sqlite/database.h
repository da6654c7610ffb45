#pragma once

// The embedded database: one SQLite file that policies, slots and notify share. All writes go
// through one writer thread. Jobs that arrive while a commit is being written to disk wait, and
// the next transaction takes them all: one fsync serves many jobs, and no caller ever sees
// SQLITE_BUSY.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "drivers/sqlite/connection.h"
#include "drivers/sqlite/readers.h"
#include "weir/result.h"

namespace weir::sqlite {

struct DatabaseOptions {
  std::string path = {};
  std::chrono::milliseconds busy_timeout{5000};
  /// Jobs that may wait; more are refused with kResourceExhausted.
  std::size_t max_queued = 65536;
  /// Jobs that one transaction takes.
  std::size_t max_group = 4096;
  /// Connections for Read, whose further callers wait for one, and threads for ReadLater.
  std::size_t readers = 2;
  /// Reads that may wait for a thread; more are refused with kResourceExhausted.
  std::size_t max_queued_reads = 4096;
  /// Long reads that may wait for the running one; more are refused.
  std::size_t max_queued_long_reads = 8;
};

/// One SQLite file, one writer, a few readers.
///
/// Thread-safe: any number of threads may call anything concurrently.
class Database {
 public:
  /// Runs on the writer thread inside a savepoint; an error rolls back what this job did, and only
  /// that. Must neither begin nor end transactions.
  using Job = std::function<Status(Connection&)>;
  /// Called once: ok means on disk. On the writer thread, or, if the job is refused, before Write
  /// returns.
  using Done = std::function<void(Status)>;

  static Result<std::unique_ptr<Database>> Open(DatabaseOptions options);
  /// Finishes the jobs that are queued, then closes the file.
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Brings a component's tables up to date (see sqlite::Migrate). Blocks; call before any Write.
  Status Migrate(std::string_view component, std::span<const char* const> steps);

  /// Queues a job. Jobs run in the order of their Write calls.
  void Write(Job job, Done done);

  /// Likewise, blocking until it is on disk. Must not be called on the writer thread or a
  /// reactor's.
  Status WriteAndWait(Job job);

  /// Runs `read` on the calling thread, which must not be a reactor's, with a read-only connection,
  /// in one consistent view of the data. Sees everything that was reported done before.
  Status Read(const std::function<Status(Connection&)>& read);

  /// Likewise on a thread of the database, which calls `done` as well; a read that is refused,
  /// because too many wait, fails before this returns.
  void ReadLater(Job read, Done done);
  /// Likewise for reads of whole tables: one at a time, on a thread of their own, so that the short
  /// ones never wait for them.
  void ReadAllLater(Job read, Done done);

  /// Finishes the queue, calls back, and ends the threads. From then on there are no callbacks
  /// any more, and every request is refused immediately with kUnavailable. Blocks;
  /// idempotent; must not be called on a thread of the database.
  void Close();

  /// Jobs waiting now, for metrics.
  std::size_t queued() const;

 private:
  struct Pending {
    Job job;
    Done done;
    Status status;
  };

  explicit Database(DatabaseOptions options);
  void WriterLoop();
  void RunGroup(std::span<Pending> group);
  Status RunJob(const Job& job);
  static void FailAll(std::span<Pending> group, const Error& error);

  const DatabaseOptions options_;
  std::unique_ptr<Connection> writer_;  // used by the writer thread; before that, by Open

  mutable std::mutex queue_mutex_;
  std::condition_variable queue_filled_;
  std::vector<Pending> queue_;
  bool closing_ = false;

  std::mutex readers_mutex_;
  std::condition_variable reader_idle_;
  std::vector<std::unique_ptr<Connection>> idle_readers_;

  std::unique_ptr<Readers> quick_;
  std::unique_ptr<Readers> long_;

  std::thread thread_;
};

}  // namespace weir::sqlite
