#pragma once

// A config's calendar as JSON.

#include <simdjson.h>

#include "base/json_writer.h"
#include "slots/slot.h"
#include "weir/result.h"

namespace weir::slots {

/// {"zone","days":[…],"open","cutOff","holidays":[dates],"cutOffs":{date:time}} and "past" of a
/// config; what is missing stays as it is.
Status ReadTiming(const simdjson::dom::object& object, Config& config);
/// ,"calendar":{…},"past":"…", each only if the config has it.
void AppendTiming(JsonWriter& json, const Config& config);

}  // namespace weir::slots
