#pragma once

#include <optional>
#include <string_view>

#include "drivers/sqlite/connection.h"
#include "slots/execution.h"
#include "weir/result.h"

// Events that are over and old leave the live table. Inside a job of the writer, except for
// reading.

namespace weir::slots::sqlite {

Result<Retired> RetireEvents(weir::sqlite::Connection& connection, const Retention& retention);

/// An event of the archive.
Result<std::optional<Event>> LookInArchive(weir::sqlite::Connection& connection,
                                           std::string_view event_id);

}  // namespace weir::slots::sqlite
