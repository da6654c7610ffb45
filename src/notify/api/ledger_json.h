#pragma once

// The JSON of messages, dead letters and preferences. Uses no sockets and no store.

#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "notify/ledger.h"
#include "notify/message.h"
#include "notify/preferences.h"
#include "weir/result.h"

namespace weir::notify {

/// {"eventId","userId","channel","recipient","state","attempts","lastError","acceptedAt",
/// "updatedAt","notBefore"}; unknown values are left out.
void AppendMessage(JsonWriter& json, const Message& message);
/// {"eventId","userId","error","attempts","failedAt"}
void AppendDead(JsonWriter& json, const DeadMessage& dead);
/// The same with "channel", "recipient" and "message", or with "payload" if it was not an event.
std::string DeadBody(const DeadMessage& dead);

/// One of {"eventIds":[…]}, {"userId":"42"} and {"all":true}.
struct DeadChoice {
  std::vector<std::string> event_ids;
  std::string user_id;
  bool all = false;
};
Result<DeadChoice> ParseDeadChoice(std::string_view body);

/// {"userId","quietHours":{"from":"22:00","to":"07:00","zone":"Europe/Berlin"},"optOut":["sms"]}
std::string PreferencesBody(const Preferences& preferences);
/// The same without the user's ID. Both fields may be absent: then the user has no preferences.
Result<Preferences> ParsePreferences(std::string_view body, std::string user_id);

}  // namespace weir::notify
