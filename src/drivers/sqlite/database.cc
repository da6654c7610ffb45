#include "drivers/sqlite/database.h"

#include <algorithm>
#include <exception>
#include <future>
#include <utility>

#include "base/blocking.h"
#include "drivers/sqlite/migration.h"

namespace weir::sqlite {

Result<std::unique_ptr<Database>> Database::Open(DatabaseOptions options) {
  std::unique_ptr<Database> database(new Database(std::move(options)));
  const DatabaseOptions& kept = database->options_;
  Connection::Options how{.path = kept.path, .busy_timeout = kept.busy_timeout};
  Result<std::unique_ptr<Connection>> writer = Connection::Open(how);
  if (!writer.ok()) return writer.error();
  database->writer_ = std::move(*writer);
  how.read_only = true;
  const std::size_t readers = std::max<std::size_t>(kept.readers, 1);
  std::vector<std::unique_ptr<Connection>> quick(readers);
  std::vector<std::unique_ptr<Connection>> all(1);
  database->idle_readers_.resize(readers);
  for (auto* const group : {&database->idle_readers_, &quick, &all}) {
    for (std::unique_ptr<Connection>& connection : *group) {
      Result<std::unique_ptr<Connection>> reader = Connection::Open(how);
      if (!reader.ok()) return reader.error();
      connection = std::move(*reader);
    }
  }
  database->quick_ = std::make_unique<Readers>(std::move(quick), kept.max_queued_reads);
  database->long_ = std::make_unique<Readers>(std::move(all), kept.max_queued_long_reads);
  database->thread_ = std::thread([raw = database.get()] { raw->WriterLoop(); });
  return database;
}

Database::Database(DatabaseOptions options) : options_(std::move(options)) {}

Database::~Database() { Close(); }

void Database::Close() {
  // A reader's callback may start a write, so the readers are closed first.
  if (long_ != nullptr) long_->Close();
  if (quick_ != nullptr) quick_->Close();
  {
    const std::lock_guard lock(queue_mutex_);
    closing_ = true;
  }
  queue_filled_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status Database::Migrate(std::string_view component, std::span<const char* const> steps) {
  // On a connection of its own: a step is a transaction, which a job must not be.
  Result<std::unique_ptr<Connection>> connection =
      Connection::Open({.path = options_.path, .busy_timeout = options_.busy_timeout});
  if (!connection.ok()) return connection.error();
  return sqlite::Migrate(**connection, component, steps);
}

void Database::Write(Job job, Done done) {
  bool closing = false;
  {
    const std::lock_guard lock(queue_mutex_);
    if (!closing_ && queue_.size() < options_.max_queued) {
      queue_.push_back({std::move(job), std::move(done), {}});
      queue_filled_.notify_one();
      return;
    }
    closing = closing_;
  }
  done(closing ? Error{Code::kUnavailable, "the database is closing"}
               : Error{Code::kResourceExhausted, "too many writes are waiting for the disk"});
}

Status Database::WriteAndWait(Job job) {
  MayBlock("waiting for a write to a SQLite file");
  std::promise<Status> promise;
  std::future<Status> outcome = promise.get_future();
  Write(std::move(job), [&promise](Status status) { promise.set_value(std::move(status)); });
  return outcome.get();
}

Status Database::Read(const std::function<Status(Connection&)>& read) {
  MayBlock("a read of a SQLite file");
  std::unique_ptr<Connection> connection;
  {
    std::unique_lock lock(readers_mutex_);
    reader_idle_.wait(lock, [this] { return !idle_readers_.empty(); });
    connection = std::move(idle_readers_.back());
    idle_readers_.pop_back();
  }
  Status status = ReadWith(*connection, read);
  {
    const std::lock_guard lock(readers_mutex_);
    idle_readers_.push_back(std::move(connection));
  }
  reader_idle_.notify_one();
  return status;
}

void Database::ReadLater(Job read, Done done) { quick_->Read(std::move(read), std::move(done)); }

void Database::ReadAllLater(Job read, Done done) { long_->Read(std::move(read), std::move(done)); }

std::size_t Database::queued() const {
  const std::lock_guard lock(queue_mutex_);
  return queue_.size();
}

void Database::WriterLoop() {
  std::vector<Pending> taken;
  for (;;) {
    {
      std::unique_lock lock(queue_mutex_);
      queue_filled_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      taken.swap(queue_);
    }
    for (std::span<Pending> rest(taken); !rest.empty();) {
      const std::span<Pending> group = rest.first(std::min(rest.size(), options_.max_group));
      rest = rest.subspan(group.size());
      RunGroup(group);
      for (Pending& pending : group) pending.done(std::move(pending.status));
    }
    taken.clear();
  }
}

void Database::RunGroup(std::span<Pending> group) {
  if (Status begun = writer_->Execute("BEGIN IMMEDIATE"); !begun.ok()) {
    FailAll(group, begun.error());
    return;
  }
  for (Pending& pending : group) {
    pending.status = RunJob(pending.job);
    if (writer_->autocommit()) {
      // The failure rolled back the whole transaction: nothing of this group is on disk.
      const Error cause = pending.status.ok()
                              ? Error{Code::kInternal, "a job ended the transaction"}
                              : pending.status.error();
      FailAll(group, cause);
      return;
    }
  }
  if (Status committed = writer_->Execute("COMMIT"); !committed.ok()) {
    if (!writer_->autocommit()) static_cast<void>(writer_->Execute("ROLLBACK"));
    FailAll(group, committed.error());
  }
}

Status Database::RunJob(const Job& job) {
  if (Status saved = writer_->Execute("SAVEPOINT job"); !saved.ok()) return saved;
  Status status;
  try {
    status = job(*writer_);
  } catch (const std::exception& problem) {
    status = Error{Code::kInternal, std::string("sqlite job: ") + problem.what()};
  }
  if (writer_->autocommit()) return status;
  if (status.ok()) status = writer_->Execute("RELEASE job");
  if (!status.ok() && !writer_->autocommit()) {
    Status undone = writer_->Execute("ROLLBACK TO job; RELEASE job");
    // Half a job must never be committed: without the savepoint the whole group is rolled back.
    if (!undone.ok()) static_cast<void>(writer_->Execute("ROLLBACK"));
  }
  return status;
}

void Database::FailAll(std::span<Pending> group, const Error& error) {
  for (Pending& pending : group) {
    if (pending.status.ok()) pending.status = error;
  }
}

}  // namespace weir::sqlite
