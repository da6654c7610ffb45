#pragma once

// A config's calendar as JSON.

#include <simdjson.h>

#include "base/json_writer.h"
#include "slots/slot.h"
#include "weir/result.h"

namespace weir::slots {

/// Reads {"zone","days":[…],"open","cutOff","holidays":[dates],"cutOffs":{date:time}} and "past"
/// into `config`; fields that are missing keep their values.
Status ReadTiming(const simdjson::dom::object& object, Config& config);
/// ,"calendar":{…},"past":"…", each only if the config has it.
void AppendTiming(JsonWriter& json, const Config& config);

}  // namespace weir::slots
