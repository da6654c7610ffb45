#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "drivers/postgres/worker.h"
#include "notify/postgres/ledger.h"

namespace weir::notify::postgres {

/// The ledger's thread and connection.
///
/// Thread-safe unless noted otherwise.
class PostgresLedger::Core : public std::enable_shared_from_this<Core> {
 public:
  using Ask = std::pair<const char*, weir::postgres::Params>;
  using Told = std::function<void(weir::postgres::Answer)>;

  Core(LedgerOptions options, Publisher* publisher, const Clock& clock);
  void Open();
  /// Answers all waiting calls with kUnavailable, and ends the thread.
  void Close();

  /// Runs a statement as a transaction of its own; an error says which part is
  /// down.
  void Send(const char* sql, weir::postgres::Params params, Told told);
  /// The same, blocking. Not on the core's thread.
  weir::postgres::Answer SendAndWait(const char* sql, weir::postgres::Params params);
  /// Runs all or none, blocking. Not on the core's thread.
  Status SendTogether(std::vector<Ask> asks);

  void Replay(std::vector<std::string> event_ids, Done<std::vector<std::string>> done);

  Micros Now() const { return NowMicros(clock_); }
  bool up() const noexcept { return up_.load(std::memory_order_relaxed); }
  std::uint64_t dead_letters() const noexcept { return dead_.load(std::memory_order_relaxed); }
  SenderFigures senders() const;

 private:
  struct Batch;
  void SendHere(const char* sql, weir::postgres::Params params, Told told);
  void Publish(const std::shared_ptr<Batch>& batch);
  void Published(const std::shared_ptr<Batch>& batch);
  void Ping();
  void CountDead();
  void SumSenders();
  Status Ready();

  const LedgerOptions options_;
  Publisher* const publisher_;
  const Clock& clock_;
  weir::postgres::Worker worker_;
  IoThread::Timer ping_timer_;
  std::atomic<bool> up_{false};
  std::atomic<std::uint64_t> dead_{0};
  mutable std::mutex senders_mutex_;
  SenderFigures senders_{.senders = 0};
  unsigned pings_ = 0;
  bool closed_ = false;
};

}  // namespace weir::notify::postgres
