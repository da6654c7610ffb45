#pragma once

#include <vector>

#include "slots/slots_target.h"
#include "weir/result.h"

namespace weir::app {

/// Assigns slots to a batch, for a command that takes long: tries again for some seconds while the
/// store is unavailable, and asks again for the events that it left unanswered. Blocks.
Result<std::vector<slots::Answer>> AssignPatiently(SlotsTarget& target,
                                                   const std::vector<slots::Ask>& asks);

}  // namespace weir::app
