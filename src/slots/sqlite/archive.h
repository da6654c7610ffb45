#pragma once

#include <optional>
#include <string_view>

#include "drivers/sqlite/connection.h"
#include "slots/execution.h"
#include "weir/result.h"

// Moves old finished events out of the live table. Runs inside a job of the writer, except for
// reading.

namespace weir::slots::sqlite {

Result<Retired> RetireEvents(weir::sqlite::Connection& connection, const Retention& retention);

/// An event in the archive.
Result<std::optional<Event>> LookInArchive(weir::sqlite::Connection& connection,
                                           std::string_view event_id);

}  // namespace weir::slots::sqlite
