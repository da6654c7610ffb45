#pragma once

// The sender service: takes events off the topic and hands them to a provider.
//
// Deliver, remember the ids on disk, report, then commit the offsets: in this order, a crash at any
// moment loses nothing. What was delivered but neither remembered nor reported is delivered once
// more after a crash (at most the batch in hand); every other repetition is recognized by its id,
// and reported if that could not be done before.

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

/// Where a message that cannot be delivered is kept for people to look at.
inline constexpr std::string_view kDeadLetterTopic = "sms-outbound-dlq";

struct DeadLetter {
  kafka::Incoming message;
  std::string reason;
};

/// Keeps all of them, or answers why not; called again with the same ones then. Blocks.
using KeepDeadLetters = std::function<Status(std::span<const DeadLetter>)>;

struct SenderParts {
  Provider& provider;
  DeliveredIds& delivered;
  KeepDeadLetters keep;
  DeliveryStats& stats;
  const Clock& clock;
  /// Where deliveries are reported, and what knows the users' wishes; nullptr: nowhere.
  DeliveryLog* log = nullptr;
  /// Told every second while messages wait here for a provider that is down. On any thread.
  std::function<void()> on_wait = {};
};

struct SenderOptions {
  /// Users whose messages are delivered at the same time; one user's keep their order.
  std::size_t workers = 1;
  RetryPolicy retry = {};
};

/// Handles batches of messages.
///
/// Not thread-safe: one thread calls Handle. The stop may be asked for from any thread.
class Sender {
 public:
  /// What is given must outlive this.
  Sender(SenderParts parts, const SenderOptions& options, std::stop_token stop);

  /// Delivers each message once, or puts it to the dead letters, and answers what may be committed.
  /// Once stop is asked for, deliveries that fail are not tried again; they and what follows them
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
  // When DropKnown last asked: the machine's clock also goes on while the machine is suspended.
  std::chrono::steady_clock::time_point asked_;
  Micros asked_at_ = 0;
  Courier courier_;
};

}  // namespace weir::notify
