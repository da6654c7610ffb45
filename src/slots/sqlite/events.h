#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "drivers/sqlite/connection.h"
#include "slots/execution.h"
#include "slots/slot.h"
#include "weir/result.h"

// One event: look, cancel, move; and lists. Functions that change data run in a job of the writer.

namespace weir::slots::sqlite {

Result<std::optional<Event>> LookAt(weir::sqlite::Connection& connection,
                                    std::string_view event_id);
Result<std::vector<Event>> ListEvents(weir::sqlite::Connection& connection, const DueQuery& query);

Result<std::optional<Slot>> CancelEvent(weir::sqlite::Connection& connection,
                                        std::string_view event_id);

/// Why a move left the event where it was: kept outside the job, which is rolled back.
struct Stayed {
  std::optional<Outcome> outcome;
};

/// A move, and why the event moves.
struct Moving {
  MoveRequest request;
  bool restoring = false;  ///< from cancelled, else from scheduled or failed
};
Result<std::optional<Answer>> MoveEvent(weir::sqlite::Connection& connection, const Moving& moving,
                                        Stayed& stayed);

/// Ends one claim with a failure and gives the event a slot again at or after end.retry_at; if
/// there is no room, it keeps its slot.
Result<Finished> RetryEvent(weir::sqlite::Connection& connection, const Finish& end, Millis now);

Status NoteChange(weir::sqlite::Connection& connection, std::string_view event_id, Millis at,
                  std::string_view what, std::string_view detail);

}  // namespace weir::slots::sqlite
