#pragma once

#include <cstdint>

#include "drivers/sqlite/connection.h"
#include "slots/time.h"
#include "weir/result.h"

// What each window of time has granted: the table rate_limit_execution.

namespace weir::slots::sqlite {

/// A window that a claim was granted for.
struct GrantWindow {
  Millis size = 0;
  Millis start = 0;
};

/// How many of `max` grants a window has left. Deducted are its own grants, earlier windows' grants
/// that ended in it, and claims for earlier windows that have not ended; with another window size,
/// everything that overlaps counts. A grant may still be open when later windows begin, so a later
/// window that already has grants, claimed ahead, must have room for it as well if it begins before
/// `lease` can have ended.
Result<std::int64_t> GrantsLeft(weir::sqlite::Connection& connection, std::int64_t config_id,
                                GrantWindow window, std::int64_t max, Millis lease);
Status CountGrants(weir::sqlite::Connection& connection, std::int64_t config_id, GrantWindow window,
                   std::int64_t count);
/// Records that a claim of `window` ended at `at`. In a later window, the execution may lie there.
Status CountEnd(weir::sqlite::Connection& connection, std::int64_t config_id, GrantWindow window,
                Millis at);

}  // namespace weir::slots::sqlite
