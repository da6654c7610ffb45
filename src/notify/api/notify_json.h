#pragma once

// The notification gateway's JSON: requests in, answers out. No sockets and no store, so it can be
// fuzzed.

#include <string>
#include <string_view>

#include "notify/notify.h"
#include "weir/result.h"

namespace weir::notify {

/// {"userId","rateLimit","timeWindow"}; also user_id, rate_limit, time_window. All that is missing
/// is named. The result holds CheckLimit.
Result<notify::UserLimit> ParseLimit(std::string_view body);

/// {"rateLimit","timeWindow"}, of a channel of a user: the result's user_id is a ChannelKey.
Result<notify::UserLimit> ParseChannelLimit(std::string_view body, const std::string& user_id,
                                            const std::string& channel);

/// "keepCount" of a valid body, also keep_count: the window goes on with what it has counted.
Result<bool> ParseKeepCount(std::string_view body);

/// {"userId","message"[,"channel"][,"recipient"][,"idempotencyKey"]}; also user_id,
/// idempotency_key. `key`, the header's, goes before the field's if it is not empty. The result
/// holds CheckSend.
Result<notify::SendRequest> ParseSend(std::string_view body, std::string_view key);

/// {"userId","rateLimit","timeWindow","currentCount"}: what somebody chose, as ParseLimit reads it,
/// and what the window that runs at `now` has counted (admin/undoable.h). This one and the next two
/// have "channel" behind "userId" if it is a channel's limit.
std::string StateBody(const notify::UserLimit& limit, notify::Micros now);
/// {"userId","rateLimit","timeWindow","currentCount","lastRefreshTime"}
std::string LimitBody(const notify::UserLimit& limit);
/// {"userId","limit","used","remaining","resetsAt"} as of `now`; no resetsAt if no window runs.
std::string QuotaBody(const notify::UserLimit& limit, notify::Micros now);
/// {"status":"QUEUED","eventId","userId","remaining","resetsAt"}
std::string SentBody(const notify::SendAnswer& answer, std::string_view user_id);

}  // namespace weir::notify
