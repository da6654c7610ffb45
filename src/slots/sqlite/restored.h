#pragma once

#include "drivers/sqlite/connection.h"
#include "slots/execution.h"
#include "weir/result.h"

namespace weir::slots::sqlite {

/// See SlotStore::MarkRestored.
Result<Restored> MarkFromBackup(weir::sqlite::Connection& connection, Millis now);

}  // namespace weir::slots::sqlite
