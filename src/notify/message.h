#pragma once

// The state of a message, reported by the gateway that accepted it and the sender that
// delivers it. The text of a message is never part of it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "notify/notify.h"

namespace weir::notify {

/// queued → failed → sent | dead | dropped. The numbers are stored in the tables.
enum class MessageState : std::uint8_t {
  kQueued = 0,   ///< accepted; waits for the sender, or for the end of quiet hours
  kFailed = 1,   ///< an attempt failed; another will follow
  kSent = 2,     ///< final: the provider has it
  kDead = 3,     ///< final unless replayed: it could not be delivered
  kDropped = 4,  ///< final: given up on purpose, by an operator or because the user opted out
};

/// "QUEUED", "FAILED", "SENT", "DEAD", "DROPPED".
std::string_view NameOf(MessageState state) noexcept;
/// The reverse, ignoring case; nullopt for anything else.
std::optional<MessageState> ParseMessageState(std::string_view name) noexcept;

/// A message that a gateway has accepted, without its text.
struct Accepted {
  std::string event_id;
  std::string user_id;
  std::string channel;
  std::string recipient;  ///< empty: the user ID
  Micros at = 0;
};

struct Message {
  Accepted accepted;
  MessageState state = MessageState::kQueued;
  std::int64_t attempts = 0;  ///< since it was last queued
  std::string last_error = {};
  Micros updated_at = 0;
  Micros not_before = 0;  ///< 0, or the end of a delay by quiet hours or by a provider that is down
};

/// Which messages, newest first.
struct MessageQuery {
  std::string user_id = {};                ///< empty: any
  std::optional<MessageState> state = {};  ///< nullopt: any
  std::size_t limit = 100;
  Micros before_time = INT64_MAX;  ///< after this one, the last of the previous page
  std::string before_id = {};
};

/// A message that could not be delivered.
struct DeadMessage {
  std::string event_id;
  std::string user_id;  ///< empty: it was not an event
  std::string event;    ///< as on the topic or in the outbox; contains the text
  std::string error;
  std::int64_t attempts = 0;
  Micros failed_at = 0;
};

inline constexpr std::size_t kMaxPage = 1000;
/// The maximum number of dead letters that one call replays or drops.
inline constexpr std::size_t kMaxDeadBatch = 1000;
/// Quiet hours last at most a day, which has 25 hours when clocks are set back. A longer delay
/// comes from a clock that was far ahead.
inline constexpr Micros kLongestDelay = Micros{26} * 60 * kMicrosPerMinute;
/// Keys and states that have expired are deleted in sets, one after another while they are whole.
inline constexpr std::int64_t kSweepSet = 5'000;
inline constexpr std::chrono::milliseconds kSweepPause{250};
/// How long the state of a message that was sent or dropped is kept.
inline constexpr Micros kMessageLifetime = Micros{30} * 24 * 60 * kMicrosPerMinute;

}  // namespace weir::notify
