#pragma once

// The notification gateway's JSON: requests in, answers out. Uses no sockets and no store, so it
// can be fuzzed.

#include <string>
#include <string_view>

#include "notify/notify.h"
#include "weir/result.h"

namespace weir::notify {

/// Parses {"userId","rateLimit","timeWindow"}; also user_id, rate_limit, time_window. The error
/// names all missing fields. The result passes CheckLimit.
Result<notify::UserLimit> ParseLimit(std::string_view body);

/// Parses {"rateLimit","timeWindow"} of a user's channel: the result's user_id is a ChannelKey.
Result<notify::UserLimit> ParseChannelLimit(std::string_view body, const std::string& user_id,
                                            const std::string& channel);

/// "keepCount" of a valid body, also keep_count: whether the window keeps its count.
Result<bool> ParseKeepCount(std::string_view body);

/// Parses {"userId","message"[,"channel"][,"recipient"][,"idempotencyKey"]}; also user_id,
/// idempotency_key. `key`, from the header, takes precedence over the field unless empty. The
/// result passes CheckSend.
Result<notify::SendRequest> ParseSend(std::string_view body, std::string_view key);

/// {"userId","rateLimit","timeWindow","currentCount"}: the configured values, as ParseLimit reads
/// them, and the count of the current window at `now` (admin/undoable.h). This one and the next two
/// have "channel" after "userId" if it is a channel's limit.
std::string StateBody(const notify::UserLimit& limit, notify::Micros now);
/// {"userId","rateLimit","timeWindow","currentCount","lastRefreshTime"}
std::string LimitBody(const notify::UserLimit& limit);
/// {"userId","limit","used","remaining","resetsAt"} as of `now`; no resetsAt if no window is open.
std::string QuotaBody(const notify::UserLimit& limit, notify::Micros now);
/// {"status":"QUEUED","eventId","userId","remaining","resetsAt"}
std::string SentBody(const notify::SendAnswer& answer, std::string_view user_id);

}  // namespace weir::notify
