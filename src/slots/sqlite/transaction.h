#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "drivers/sqlite/connection.h"
#include "slots/batch.h"
#include "slots/slot.h"
#include "weir/result.h"

// What changes slots, each inside one job of the writer. Nobody else writes meanwhile, so there is
// nothing to lock.

namespace weir::slots::sqlite {

/// The event's slot, if it has one.
Result<std::optional<Slot>> FindSlot(weir::sqlite::Connection& connection,
                                     std::string_view event_id);

/// Assigns the asks of one config; fills their places in `answers`.
Status AssignGroup(weir::sqlite::Connection& connection, std::span<const Ask> asks,
                   const ConfigGroup& group, std::vector<Answer>& answers);

Result<std::optional<Slot>> CancelSlot(weir::sqlite::Connection& connection,
                                       std::string_view event_id);

}  // namespace weir::slots::sqlite
