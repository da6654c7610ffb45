#pragma once

#include <functional>
#include <string>

#include "admin/undoable.h"
#include "slots/slot_store.h"

namespace weir::slots {

/// Slot configs, of kind "slots". `forget` is told the name of what was restored, before anybody
/// can ask for it. `store` must outlive the undoable.
admin::Undoable SlotConfigs(SlotStore& store, std::function<void(const std::string&)> forget);

}  // namespace weir::slots
