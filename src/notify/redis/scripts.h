#pragma once

// The gateway's operations in Redis, each one atomic script. The hash RateLimiterCache:{userId} has
//   rateLimit, currentCount    as named; rateLimit is "table" for a user whose channels
//                              have their own limits: the table decides about such a user
//   windowStart, windowEnd     microseconds since the epoch: the current window
//   serverRun                  the run of the Redis server in which the hash was created
// and a time to live that ends with the window. A hash of another run may be older than what was
// counted since (a server restored from a snapshot), so it is treated as missing. The
// window's end is also compared with the caller's clock, which may differ from the server's.

#include <cstdint>
#include <string>
#include <string_view>

#include "drivers/redis/command.h"
#include "drivers/redis/reply.h"
#include "drivers/redis/script.h"
#include "notify/notify.h"
#include "weir/result.h"

namespace weir::notify::redis {

std::string CacheKey(std::string_view user_id);
/// The key under which a send is remembered by its idempotency key.
std::string SendKey(std::string_view user_id, std::string_view key);

/// A remembered send: counted, and later confirmed by the broker.
struct Remembered {
  std::int64_t digest = 0;
  bool confirmed = false;
  Micros window_start = 0;  ///< the window in which it was counted
  SendAnswer answer;
};
std::string Encode(const Remembered& send);
/// Rejects anything that Encode did not write.
Result<Remembered> Decode(std::string_view text);

/// Takes a place. Keys: the hash and, if the request has a key, SendKey. A send that was counted in
/// a window that has ended, and was never confirmed, is forgotten: it needs a place in this window.
const weir::redis::Script& TakeScript();
struct Taken {
  enum class Kind { kMiss, kLimited, kAllowed, kSeen, kTable };
  Kind kind = Kind::kMiss;
  std::int64_t rate_limit = 0;
  std::int64_t remaining = 0;
  Micros window_start = 0;
  Micros window_end = 0;
  std::string seen = {};  ///< kSeen: as Encode wrote it
};
/// `send_key` empty: none. `digest` and `event_id` are remembered with it.
weir::redis::Command TakeArguments(std::string_view user_id, std::string_view send_key, Micros now,
                                   std::string_view run, std::int64_t digest,
                                   std::string_view event_id);
Result<Taken> ReadTaken(const weir::redis::Reply& reply);

/// Creates the hash unless there is a valid one. Within one window, a count never decreases.
const weir::redis::Script& FillScript();
weir::redis::Command FillArguments(const UserLimit& limit, Micros now, std::string_view run);

}  // namespace weir::notify::redis
