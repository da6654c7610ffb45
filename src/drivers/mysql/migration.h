#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::mysql {

/// Brings a component's tables up to date: runs the steps that this database has not seen, in
/// order, and records them in the table weir_migrations. Several processes may do so at once; one
/// works, the others wait. A step may be run again if the server dies before it is recorded
/// (there are no transactions around DDL here), so it must say IF NOT EXISTS. Steps are never
/// edited once released. If all have run, nothing but the right to read weir_migrations is needed.
///
/// Blocks, on a connection of its own. Thread-safe.
Status Migrate(const std::string& url, std::string_view component,
               std::span<const char* const> steps);

}  // namespace weir::mysql
