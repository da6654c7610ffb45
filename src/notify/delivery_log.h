#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "notify/event.h"
#include "notify/message.h"
#include "notify/preferences.h"
#include "weir/result.h"

namespace weir::notify {

/// How an attempt to deliver a message ended.
struct Delivery {
  Event event;  ///< without a user id: what came was not an event, and `payload` is all there is
  MessageState state = MessageState::kSent;
  int attempts = 0;
  std::string error = {};
  Micros not_before = 0;     ///< kQueued: it is kept until then
  std::string payload = {};  ///< kDead and kQueued: what to keep
};

/// Where a sender outside the gateway reports deliveries and reads users' preferences. All calls
/// block for a bounded time.
///
/// Thread-safe.
class DeliveryLog {
 public:
  virtual ~DeliveryLog() = default;

  /// All of them or none, on disk when it returns. A message that was sent stays sent, whatever is
  /// reported later.
  virtual Status Report(std::span<const Delivery> ends) = 0;
  /// An attempt failed and there will be another. What cannot be noted is not noted.
  virtual void NoteFailure(const Delivery& failure) = 0;
  /// Of those users that have expressed any.
  virtual Result<std::unordered_map<std::string, Preferences>> PreferencesOf(
      std::span<const std::string> users) = 0;
  /// Those of `event_ids` that must not be delivered any more: sent, by whichever sender, or
  /// dropped.
  virtual Result<std::unordered_set<std::string>> Settled(
      std::span<const std::string> event_ids) = 0;

  /// Delayed events whose time has come. They are kept, and given again after a minute, until they
  /// are forgotten.
  struct Due {
    std::vector<std::string> events;
    Micros lease = 0;
  };
  virtual Result<Due> TakeDue(Micros now, std::size_t max) = 0;
  /// They are in the queue again. One that was delayed again since is kept.
  virtual Status Forget(std::span<const std::string> event_ids, Micros lease) = 0;
};

}  // namespace weir::notify
