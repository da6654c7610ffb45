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

/// The outcome of an attempt to deliver a message.
struct Delivery {
  Event event;  ///< without a user ID: it was not an event, and there is only `payload`
  MessageState state = MessageState::kSent;
  int attempts = 0;
  std::string error = {};
  Micros not_before = 0;     ///< kQueued: stored until then
  std::string payload = {};  ///< kDead and kQueued: what to store
};

/// Where an external sender reports deliveries and reads users' preferences. All calls
/// block for a bounded time.
///
/// Thread-safe.
class DeliveryLog {
 public:
  virtual ~DeliveryLog() = default;

  /// Reports all of them or none; on disk when it returns. A message that was sent stays sent,
  /// whatever is reported later.
  virtual Status Report(std::span<const Delivery> ends) = 0;
  /// Records that an attempt failed and another will follow. Failures to record it are ignored.
  virtual void NoteFailure(const Delivery& failure) = 0;
  /// The preferences of those users that have set any.
  virtual Result<std::unordered_map<std::string, Preferences>> PreferencesOf(
      std::span<const std::string> users) = 0;
  /// Those of `event_ids` that must no longer be delivered: sent, by any sender, or
  /// dropped.
  virtual Result<std::unordered_set<std::string>> Settled(
      std::span<const std::string> event_ids) = 0;

  /// Delayed events that are due. They are kept, and returned again after a minute, until they
  /// are forgotten.
  struct Due {
    std::vector<std::string> events;
    Micros lease = 0;
  };
  virtual Result<Due> TakeDue(Micros now, std::size_t max) = 0;
  /// Call it once they are in the queue again. An event that was delayed again since is kept.
  virtual Status Forget(std::span<const std::string> event_ids, Micros lease) = 0;
};

}  // namespace weir::notify
