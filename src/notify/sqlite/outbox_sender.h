#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "drivers/sqlite/database.h"
#include "notify/courier.h"
#include "notify/delivery_stats.h"
#include "notify/provider.h"
#include "weir/clock.h"

namespace weir::notify::sqlite {

struct SenderOptions {
  std::size_t batch = 512;  ///< events that are read, and later removed, together
  std::size_t workers = 1;  ///< users whose messages are delivered at the same time
  RetryPolicy retry = {};
  std::chrono::milliseconds look_for_due{1000};  ///< how often delayed events are checked
};

/// Delivers the outbox's events on a thread of its own, each user's messages in order. An event
/// leaves the outbox when it was delivered; during quiet hours it is stored separately; if
/// it cannot be delivered, it becomes a dead letter. The message's state changes in the same
/// transaction. After a crash, the last batch may be delivered again.
///
/// Thread-safe.
class OutboxSender {
 public:
  /// All arguments must outlive this. `gone` is called with the number of events that have left it.
  OutboxSender(weir::sqlite::Database& database, Provider& provider, const Clock& clock,
               std::function<void(std::size_t)> gone, SenderOptions options = {});
  ~OutboxSender() { Stop(); }
  OutboxSender(const OutboxSender&) = delete;
  OutboxSender& operator=(const OutboxSender&) = delete;

  /// Finishes the deliveries in progress; Wake has no effect afterwards. Call it from the owner.
  void Stop();

  /// The outbox has more.
  void Wake();

  const DeliveryStats& stats() const noexcept { return stats_; }
  /// The current number, without letters that were just replayed or dropped.
  std::uint64_t dead_letters() const noexcept {
    // Below 0 for a moment if a letter is replayed before it is counted.
    return static_cast<std::uint64_t>(
        std::max<std::int64_t>(dead_.load(std::memory_order_relaxed), 0));
  }
  void ForgetDead(std::size_t letters) noexcept {
    dead_.fetch_sub(static_cast<std::int64_t>(letters), std::memory_order_relaxed);
  }

 private:
  struct Row {
    std::int64_t id = 0;
    std::string event;
    Parcel parcel = {};
  };

  void Loop();
  /// Delivers a batch. False: there was none, or a stop was requested.
  bool DeliverBatch();
  Result<std::vector<Row>> Read();
  Status ReadInto(weir::sqlite::Connection& connection, std::vector<Row>& rows);
  Status Remove(const std::vector<Row>& rows);
  Status Settle(weir::sqlite::Connection& connection, const Row& row, Micros now);
  void Note(const std::vector<Row>& rows);
  void NoteFailure(const Delivery& failure);
  Status Release();

  weir::sqlite::Database& database_;
  const Clock& clock_;
  const std::function<void(std::size_t)> gone_;
  const SenderOptions options_;
  DeliveryStats stats_;
  std::stop_source stop_;
  Courier courier_;
  std::atomic<std::int64_t> dead_{0};

  std::mutex mutex_;
  std::condition_variable_any woken_;
  bool more_ = true;
  std::thread thread_;
};

}  // namespace weir::notify::sqlite
