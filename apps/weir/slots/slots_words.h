#pragma once

// The words under `weir slots` that only talk to a running service.

#include <string>

#include "slots/slot.h"
#include "syntax.h"
#include "weir/result.h"

namespace weir::app {

/// --at: a time, or "now". Errors name the option.
Result<slots::Millis> ReadAt(const std::string& at);

/// weir slots config list | get | set | delete | history.
void AddSlotsConfig(Syntax slots_word);
/// weir slots assign: one event, or a file of them.
void AddSlotsAssign(Syntax slots_word);
/// weir slots show | cancel | restore | reschedule | due | status.
void AddSlotsEvents(Syntax slots_word);

}  // namespace weir::app
