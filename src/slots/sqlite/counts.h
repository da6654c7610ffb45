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

/// How many of `max` grants a window has left. Used up are its own, what ended in it of earlier
/// windows, and what was claimed for earlier windows and has not ended; of another window size
/// counts all that overlaps. A grant may still be open when later windows begin, so one that has
/// grants already, which were claimed ahead, must have room for it as well, if it begins before
/// `lease` can have ended.
Result<std::int64_t> GrantsLeft(weir::sqlite::Connection& connection, std::int64_t config_id,
                                GrantWindow window, std::int64_t max, Millis lease);
Status CountGrants(weir::sqlite::Connection& connection, std::int64_t config_id, GrantWindow window,
                   std::int64_t count);
/// A claim of `window` ended at `at`. If that is in a later window, its execution may lie there.
Status CountEnd(weir::sqlite::Connection& connection, std::int64_t config_id, GrantWindow window,
                Millis at);

}  // namespace weir::slots::sqlite
