#pragma once

#include <functional>
#include <string>

#include "server/undoable.h"
#include "slots/slot_store.h"

namespace weir::server {

/// Slot configs, of kind "slots". `forget` is told the name of what was restored, before anybody
/// can ask for it. `store` must outlive the undoable.
Undoable SlotConfigs(slots::SlotStore& store, std::function<void(const std::string&)> forget);

}  // namespace weir::server
