#pragma once

// The sender service: takes events from the topic and passes them to a provider.
//
// It delivers, stores the IDs on disk, reports, then commits the offsets: in this order, a crash at
// any moment loses nothing. Messages delivered but neither stored nor reported are delivered again
// after a crash (at most the current batch); every other repetition is recognized by its ID,
// and reported if that was not possible before.

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/kafka/consumer.h"
#include "notify/courier.h"
#include "notify/delivered_ids.h"
#include "notify/delivery_log.h"
#include "notify/delivery_stats.h"
#include "notify/provider.h"
#include "notify/retry.h"

namespace weir::notify {

/// Where messages that cannot be delivered are kept for inspection.
inline constexpr std::string_view kDeadLetterTopic = "sms-outbound-dlq";

struct DeadLetter {
  kafka::Incoming message;
  std::string reason;
};

/// Stores all of them or returns an error; is then called again with the same ones. Blocks.
using KeepDeadLetters = std::function<Status(std::span<const DeadLetter>)>;

struct SenderParts {
  Provider& provider;
  DeliveredIds& delivered;
  KeepDeadLetters keep;
  DeliveryStats& stats;
  const Clock& clock;
  /// Where deliveries are reported and users' preferences are read; nullptr: nowhere.
  DeliveryLog* log = nullptr;
  /// Called every second while messages wait here for a provider that is down. On any thread.
  std::function<void()> on_wait = {};
};

struct SenderOptions {
  /// Users whose messages are delivered at the same time; one user's keep their order.
  std::size_t workers = 1;
  RetryPolicy retry = {};
};

/// Handles batches of messages.
///
/// Not thread-safe: one thread calls Handle. Any thread may request the stop.
class Sender {
 public:
  /// All arguments must outlive this.
  Sender(SenderParts parts, const SenderOptions& options, std::stop_token stop);

  /// Delivers each message once, or puts it with the dead letters; returns what may be committed.
  /// After a stop request, failed deliveries are not retried; they and the messages after them
  /// in their partition are left for the next start.
  std::vector<kafka::Position> Handle(std::vector<kafka::Incoming> messages);

 private:
  struct Item;
  void Decode(std::vector<Item>& items);
  bool DropKnown(std::vector<Item>& items);
  bool IsSettledSince(const Event& event);
  bool RespectWishes(std::vector<Item>& items);
  void Deliver(std::vector<Item>& items);
  bool Report(const std::vector<Item>& items);
  bool KeepDead(const std::vector<Item>& items);
  bool Remember(const std::vector<Item>& items);
  bool Insist(std::string_view what, const std::function<Status()>& attempt);
  void Count(const std::vector<Item>& items);

  const SenderParts parts_;
  const std::stop_token stop_;
  // When DropKnown last read the log, by two clocks: only the second runs during a suspend.
  std::chrono::steady_clock::time_point asked_;
  Micros asked_at_ = 0;
  Courier courier_;
};

}  // namespace weir::notify
