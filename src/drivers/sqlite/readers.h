#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "drivers/sqlite/connection.h"
#include "weir/result.h"

namespace weir::sqlite {

/// Runs `read` in one consistent view of the data.
Status ReadWith(Connection& connection, const std::function<Status(Connection&)>& read);

/// Threads that read, each with its own connection, so that reads do not wait for each other. What
/// they do together is bounded: by the number of threads and by how many jobs may wait.
///
/// Thread-safe.
class Readers {
 public:
  using Job = std::function<Status(Connection&)>;
  using Done = std::function<void(Status)>;

  /// One thread for each of `connections`.
  Readers(std::vector<std::unique_ptr<Connection>> connections, std::size_t max_queued);
  /// Finishes the queued jobs.
  ~Readers() { Close(); }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;

  /// Finishes the queued jobs and ends the threads; refuses later ones. Idempotent.
  void Close();

  /// `done` runs on one of the threads, or here with kResourceExhausted if too many wait already,
  /// and with kUnavailable after Close.
  void Read(Job job, Done done);

 private:
  struct Pending {
    Job job;
    Done done;
  };

  void Loop(Connection& connection);

  const std::size_t max_queued_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Pending> queue_;
  bool closing_ = false;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace weir::sqlite
