#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "drivers/sqlite/database.h"
#include "notify/provider.h"
#include "weir/clock.h"

namespace weir::notify::sqlite {

struct SenderOptions {
  std::size_t batch = 512;  ///< events that are read, and later deleted, together
  int max_attempts = 5;
  std::chrono::milliseconds first_pause{200};  ///< doubled with every attempt
  std::chrono::milliseconds longest_pause{5000};
};

/// Delivers what is in the outbox, in order, on a thread of its own. An event leaves the outbox
/// when it was delivered; after max_attempts, or when trying again cannot help, it goes to the dead
/// letters. After a crash the last batch may be delivered once more.
///
/// Thread-safe.
class OutboxSender {
 public:
  /// What is given must outlive this. `gone` is told how many events have left the outbox.
  OutboxSender(weir::sqlite::Database& database, Provider& provider, const Clock& clock,
               std::function<void(std::size_t)> gone, SenderOptions options = {});
  /// Finishes the event that is being delivered.
  ~OutboxSender();

  /// The outbox has more.
  void Wake();

  std::uint64_t delivered() const noexcept { return delivered_.load(std::memory_order_relaxed); }
  /// Since the tables were made.
  std::uint64_t dead_letters() const noexcept { return dead_.load(std::memory_order_relaxed); }

 private:
  struct Row {
    std::int64_t id = 0;
    std::string event;
    std::string error = {};  // not empty: a dead letter
  };

  void Loop();
  bool Sleep(std::chrono::milliseconds pause);
  Result<std::vector<Row>> Read();
  /// False: asked to stop before the row was done with.
  bool Deliver(Row& row);
  Status Remove(const std::vector<Row>& rows);

  weir::sqlite::Database& database_;
  Provider& provider_;
  const Clock& clock_;
  const std::function<void(std::size_t)> gone_;
  const SenderOptions options_;
  std::atomic<std::uint64_t> delivered_{0};
  std::atomic<std::uint64_t> dead_{0};

  std::mutex mutex_;
  std::condition_variable woken_;
  bool more_ = true;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace weir::notify::sqlite
