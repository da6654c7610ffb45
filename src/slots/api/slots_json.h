#pragma once

// Slots as JSON: requests in, answers out. Uses no sockets and no store, so it can be fuzzed.

#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "slots/forecast.h"
#include "slots/slot.h"
#include "weir/result.h"

namespace weir::slots {

/// One event of a request: its ask, or what is wrong with it (naming the field).
struct ParsedAsk {
  Ask ask = {};
  Status status = {};
};

/// Parses {"eventId","configName","requestedTime"[,"tenant"][,"payload"]}. Ask::random is left 0.
Result<Ask> ParseAsk(std::string_view body);
/// Parses {"events":[…]}, 1 to kMaxBatch of them. Fails if the body is not such a list.
Result<std::vector<ParsedAsk>> ParseBatch(std::string_view body);
/// {"requestedTime"[,"configName"]}.
Result<MoveRequest> ParseReschedule(std::string_view body, std::string event_id);
/// {"configName","windowSize","maxPerWindow"[,"headroom"][,"fairWindows"][,"tenants":{name:weight}]
/// [,"calendar":{…}][,"past"]}.
Result<Config> ParseConfig(std::string_view body);

/// `message` is left out if it is empty.
void AppendSlot(JsonWriter& json, const Slot& slot, std::string_view status,
                std::string_view message = {});
/// An event of a batch that got no slot.
void AppendRefusal(JsonWriter& json, const Ask& ask, std::string_view status,
                   std::string_view message);
void AppendConfig(JsonWriter& json, const Config& config);
std::string ConfigBody(const Config& config);
void AppendWindow(JsonWriter& json, const WindowLoad& window);
std::string ForecastBody(const Forecast& forecast, const Config& config, Millis requested,
                         std::int64_t count);
std::string FindingsBody(const Findings& findings);

}  // namespace weir::slots
