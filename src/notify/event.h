#pragma once

// A notification on its way to the sender, and its form on the topic:
//   {"id":"6f1c…","userId":"42","message":"hello","timestamp":"2026-01-02T03:04:05.678Z"}
// and, unless they are the default, "channel":"email" and "recipient":"ann@example.com". With an
// idempotency key also "earlierId":"41aa…".

#include <string>
#include <string_view>

#include "notify/notify.h"
#include "weir/result.h"

namespace weir::notify {

/// The topic that carries events from the gateway to the sender.
inline constexpr std::string_view kTopic = "sms-outbound";

struct Event {
  std::string id;  ///< a UUID; two events with the same id are the same notification
  std::string user_id;
  std::string message;
  Micros created_at = 0;  ///< kept to the millisecond on the topic
  std::string channel = std::string(kDefaultChannel);
  std::string recipient = {};  ///< empty: the user's ID
  /// The ID that the same request had the day before; empty: no idempotency key. An event with that
  /// ID, if it is younger than kKeyLifetime, is the same notification: a request repeated
  /// after midnight.
  std::string earlier_id = {};

  const std::string& to() const noexcept { return recipient.empty() ? user_id : recipient; }

  friend bool operator==(const Event&, const Event&) = default;
};

/// Creates the event of a request. Its ID is random or, with an idempotency key, derived
/// from user, key, message and day: a request that is repeated because its answer was lost becomes
/// the same event, and the sender delivers it once; after midnight thanks to its earlier_id.
Event MakeEvent(const SendRequest& request, Micros now);

/// A fingerprint of the message and its recipient, which detects a key that is reused with another
/// message.
std::int64_t MessageDigest(const SendRequest& request);

std::string EncodeEvent(const Event& event);

/// kInvalidArgument, with the reason, if `json` is not an event. `timestamp` may be absent;
/// unknown fields are ignored.
Result<Event> DecodeEvent(std::string_view json);

/// 2026-01-02T03:04:05.678Z
std::string FormatTime(Micros time);

}  // namespace weir::notify
