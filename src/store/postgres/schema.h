#pragma once

#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::store::postgres {

/// Creates the table of limits and its view, or brings them up to date; does nothing if they are.
/// Blocks.
Status Migrate(const std::string& url);

/// The server's error code for a missing table.
inline constexpr std::string_view kUndefinedTable = "42P01";

}  // namespace weir::store::postgres
