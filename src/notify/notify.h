#pragma once

// The terms of the notification gateway: a user's limit, a request to send, and its outcome.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/clock.h"
#include "weir/result.h"

namespace weir::notify {

/// Microseconds since the Unix epoch, the resolution of the databases.
using Micros = std::int64_t;

inline constexpr std::size_t kMaxUserIdBytes = 256;
inline constexpr std::size_t kMaxMessageBytes = 16'384;
inline constexpr std::size_t kMaxIdempotencyKeyBytes = 255;
inline constexpr std::size_t kMaxRecipientBytes = 320;  ///< the longest e-mail address
inline constexpr std::size_t kMaxChannelBytes = 32;
/// The channel of a message that names none.
inline constexpr std::string_view kDefaultChannel = "sms";
inline constexpr std::int64_t kMaxRateLimit = 1'000'000'000;
inline constexpr std::int64_t kMaxTimeWindow = 525'600;  ///< minutes: a year of 365 days
inline constexpr Micros kMicrosPerMinute = 60'000'000;
/// How long an idempotency key is remembered, at the least.
inline constexpr Micros kKeyLifetime = Micros{24} * 60 * kMicrosPerMinute;

/// One row of the table rate_limit_store: the limit of a user, or of one channel of a user.
struct UserLimit {
  std::string user_id;           ///< or a ChannelKey
  std::int64_t rate_limit = 0;   ///< sends per window
  std::int64_t time_window = 0;  ///< minutes
  std::int64_t current_count = 0;
  Micros last_refresh_time = 0;
  bool has_channels = false;  ///< channels of the user have their own limits; not always filled in

  Micros window_end() const noexcept { return last_refresh_time + time_window * kMicrosPerMinute; }
  /// Whether the window has ended: the next send starts a new one. Also true if it begins too far
  /// ahead, by more than its length and more than a day: the clock was wrong, and the end would be
  /// too far off. Gateways whose clocks differ by less do not end each other's windows in turn.
  bool Expired(Micros now) const noexcept {
    constexpr Micros kDay = Micros{24} * 60 * kMicrosPerMinute;
    const Micros length = window_end() - last_refresh_time;
    return now >= window_end() || last_refresh_time - now > std::max(length, kDay);
  }

  friend bool operator==(const UserLimit&, const UserLimit&) = default;
};

/// A client's request: send `message` to `user_id`.
struct SendRequest {
  std::string user_id;
  std::string message;
  std::string idempotency_key = {};  ///< empty: none
  std::string channel = std::string(kDefaultChannel);
  std::string recipient = {};  ///< an address or a number; empty: the user's ID
};

enum class Outcome {
  kSent,         ///< confirmed by the broker (or on disk, in the embedded gateway), and counted
  kLimited,      ///< the user's window is full
  kUnknownUser,  ///< no configuration exists for the user
  kKeyReused,    ///< the idempotency key was used with another message before
};

/// The answer to a SendRequest that could be decided.
struct SendAnswer {
  Outcome outcome = Outcome::kSent;
  std::string event_id = {};    ///< kSent
  bool replayed = false;        ///< kSent: the answer of an earlier request with the same key
  std::int64_t rate_limit = 0;  ///< kSent and kLimited, as are the next two
  std::int64_t remaining = 0;
  Micros resets_at = 0;
  bool of_channel = false;  ///< kLimited: the channel's window is the full one
};

Micros NowMicros(const Clock& clock) noexcept;

/// 1 to kMaxUserIdBytes bytes without control characters; kInvalidArgument says what is wrong.
Status CheckUserId(std::string_view user_id);
/// Must be 1 to kMaxChannelBytes of a-z, 0-9, '-' and '_'.
Status CheckChannel(std::string_view channel);
/// The name of a row that limits one channel of a user. It is never a user ID, since those have no
/// control characters.
std::string ChannelKey(std::string_view user_id, std::string_view channel);
/// The user and the channel of a row's name; the channel is empty for a user's own row.
struct RowName {
  std::string_view user_id;
  std::string_view channel;
};
RowName SplitRowName(std::string_view name) noexcept;
/// Checks the user ID, which must not be a ChannelKey, and the ranges of the two numbers.
Status CheckLimit(const UserLimit& limit);
/// Checks the user ID, the message (1 to kMaxMessageBytes bytes), key, channel and recipient.
Status CheckSend(const SendRequest& request);

}  // namespace weir::notify
