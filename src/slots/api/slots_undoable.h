#pragma once

#include <functional>
#include <string>

#include "admin/undoable.h"
#include "slots/slot_store.h"

namespace weir::slots {

/// Slot configs, of kind "slots". `forget` is called with the name of a restored config before the
/// change is reported as done. `store` must outlive the undoable.
admin::Undoable SlotConfigs(SlotStore& store, std::function<void(const std::string&)> forget);

}  // namespace weir::slots
