#pragma once

// The JSON of messages, dead letters and preferences. No sockets and no store.

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
/// "updatedAt","notBefore"}; what is not known is left out.
void AppendMessage(JsonWriter& json, const Message& message);
/// {"eventId","userId","error","attempts","failedAt"}
void AppendDead(JsonWriter& json, const DeadMessage& dead);
/// The same with "channel", "recipient" and "message", or with "payload" if it was not an event.
std::string DeadBody(const DeadMessage& dead);

/// {"eventIds":[…]}, {"userId":"42"} or {"all":true}: one of them.
struct DeadChoice {
  std::vector<std::string> event_ids;
  std::string user_id;
  bool all = false;
};
Result<DeadChoice> ParseDeadChoice(std::string_view body);

/// {"userId","quietHours":{"from":"22:00","to":"07:00","zone":"Europe/Berlin"},"optOut":["sms"]}
std::string PreferencesBody(const Preferences& preferences);
/// The same without the user's id. Both fields may be absent: then the user wishes nothing.
Result<Preferences> ParsePreferences(std::string_view body, std::string user_id);

}  // namespace weir::notify
