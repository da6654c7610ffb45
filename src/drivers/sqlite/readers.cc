#include "drivers/sqlite/readers.h"

#include <exception>
#include <string>
#include <utility>

namespace weir::sqlite {

Status ReadWith(Connection& connection, const std::function<Status(Connection&)>& read) {
  Status status = connection.Execute("BEGIN");
  if (!status.ok()) return status;
  try {
    status = read(connection);
  } catch (const std::exception& problem) {
    status = Error{Code::kInternal, std::string("sqlite read: ") + problem.what()};
  }
  // Nothing was written, so ending the view cannot lose anything.
  static_cast<void>(connection.Execute("COMMIT"));
  return status;
}

Readers::Readers(std::vector<std::unique_ptr<Connection>> connections, std::size_t max_queued)
    : max_queued_(max_queued), connections_(std::move(connections)) {
  for (const auto& connection : connections_) {
    threads_.emplace_back([this, &one = *connection] { Loop(one); });
  }
}

void Readers::Close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Readers::Read(Job job, Done done) {
  bool closing = false;
  {
    const std::lock_guard lock(mutex_);
    closing = closing_;
    if (!closing && queue_.size() < max_queued_) {
      queue_.push_back({std::move(job), std::move(done)});
      changed_.notify_one();
      return;
    }
  }
  done(closing
           ? Error{Code::kUnavailable, "the database is closing"}
           : Error{Code::kResourceExhausted, "too many reads are waiting for the disk; try again"});
}

void Readers::Loop(Connection& connection) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Pending pending = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    Status status = ReadWith(connection, pending.job);
    pending.done(std::move(status));
    pending = {};
    lock.lock();
  }
}

}  // namespace weir::sqlite
