#pragma once

// The words under `weir slots` that speak to a running service alone.

#include "syntax.h"

namespace weir::app {

/// weir slots config list | get | set | delete | history.
void AddSlotsConfig(Syntax slots_word, int& exit_code);
/// weir slots assign: one event, or a file of them.
void AddSlotsAssign(Syntax slots_word, int& exit_code);
/// weir slots show | cancel | restore | reschedule | due | status.
void AddSlotsEvents(Syntax slots_word, int& exit_code);

}  // namespace weir::app
