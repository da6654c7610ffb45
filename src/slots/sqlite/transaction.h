#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "drivers/sqlite/connection.h"
#include "slots/batch.h"
#include "slots/execution.h"
#include "slots/sqlite/configs.h"
#include "weir/result.h"

// Changes to slots, each inside one job of the writer. No other writes run meanwhile, so nothing
// needs to be locked.

namespace weir::slots::sqlite {

/// The fields of a stored event that changing it needs.
struct StoredSlot {
  std::int64_t config_id = 0;
  Millis window_size = 0;
  Slot slot = {};
  State state = State::kScheduled;
  std::int64_t attempts = 0;
  Millis claimed_at = 0;
  Millis exec_size = 0;  ///< 0: not claimed, or the claim was counted as ended
  Millis exec_window = 0;
  std::int64_t failures = 0;  ///< failures that count against it
  Millis lease_until = 0;
  std::string claimed_by = {};
  std::string payload = {};
};

Result<std::optional<StoredSlot>> LoadSlot(weir::sqlite::Connection& connection,
                                           std::string_view event_id);

/// Assigns the asks of one config; fills in their entries of `answers`.
Status AssignGroup(weir::sqlite::Connection& connection, std::span<const Ask> asks,
                   const ConfigGroup& group, std::vector<Answer>& answers);

/// Takes one place in the earliest window with room; nullopt if there is none.
Result<std::optional<Millis>> TakePlace(weir::sqlite::Connection& connection,
                                        const StoredConfig& stored, std::string_view tenant,
                                        Millis earliest, std::span<const OpenTime> open);
/// Frees the place of an event that holds one.
Status FreePlace(weir::sqlite::Connection& connection, const StoredSlot& gone);

}  // namespace weir::slots::sqlite
