#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "drivers/sqlite/database.h"
#include "notify/gateway.h"
#include "weir/clock.h"

namespace weir::notify::sqlite {

struct Options {
  std::size_t max_waiting = 50'000;
  std::size_t max_batch = 1'000;  ///< requests in one job
  std::size_t max_outbox =
      1'000'000;  ///< events that may wait for delivery; beyond it sends are refused
};

/// The embedded gateway: limits, counts and an outbox in the embedded database. A send is answered
/// when its count and its event are on disk, in one transaction; OutboxSender delivers it. Requests
/// that arrive while the disk is busy share a job, and jobs share a commit.
class SqliteGateway final : public Gateway {
 public:
  /// Creates the tables if needed. `database` and `clock` must outlive the gateway and its jobs.
  /// `on_event` is called, on the writer's thread, when the outbox has more.
  static Result<std::unique_ptr<SqliteGateway>> Open(weir::sqlite::Database& database,
                                                     const Clock& clock, Options options,
                                                     std::function<void()> on_event);
  ~SqliteGateway() override = default;

  /// Waits for the gateway's jobs: on_event is not called afterwards. No sends may follow.
  void Close();

  void Configure(UserLimit limit, Done<UserLimit> done) override;
  void Adjust(UserLimit limit, Done<UserLimit> done) override;
  void Ensure(UserLimit limit, Done<bool> done) override;
  void Remove(std::string user_id, Done<bool> done) override;
  void Send(SendRequest request, Done<SendAnswer> done) override;
  void Find(std::string user_id, Done<std::optional<UserLimit>> done) override;
  std::size_t waiting() const override { return waiting_.load(std::memory_order_relaxed); }

  /// Events that were delivered, or given up, and have left the outbox.
  void Delivered(std::size_t events) noexcept;
  /// Dead letters that were put into the outbox again.
  void Requeued(std::size_t events) noexcept;
  std::size_t outbox() const noexcept;

 private:
  struct Waiting {
    SendRequest request;
    Done<SendAnswer> done;
  };
  struct Job;

  SqliteGateway(weir::sqlite::Database& database, const Clock& clock, Options options,
                std::function<void()> on_event);
  void Write();
  Status Run(weir::sqlite::Connection& connection, Job& job);
  void Finish(Job& job, const Status& status);
  Status SweepKeys(weir::sqlite::Connection& connection, Micros now);

  weir::sqlite::Database& database_;
  const Clock& clock_;
  const Options options_;
  const std::function<void()> on_event_;
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::int64_t> outbox_{0};  // below 0 for a moment if the sender is faster
  Micros next_sweep_ = 0;                // used by the writer

  std::mutex mutex_;
  std::vector<Waiting> queue_;
  bool job_queued_ = false;  // and has not yet taken the queue
};

}  // namespace weir::notify::sqlite
