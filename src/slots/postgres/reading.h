#pragma once

#include <string>
#include <utility>

#include "drivers/postgres/rows.h"
#include "slots/slot.h"

namespace weir::slots::postgres {

/// The columns config, tenant, requested, window, scheduled from `column` on.
inline Slot ReadSlot(const weir::postgres::Rows& rows, int row, int column, std::string event_id) {
  return {.event_id = std::move(event_id),
          .config = std::string(rows.Text(row, column)),
          .tenant = std::string(rows.Text(row, column + 1)),
          .requested = rows.Int(row, column + 2),
          .window_start = rows.Int(row, column + 3),
          .scheduled = rows.Int(row, column + 4)};
}

}  // namespace weir::slots::postgres
