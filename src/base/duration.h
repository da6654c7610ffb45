#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir {

/// Parses a positive duration as people write it: whole numbers with a unit (`500ms`, `10s`, `1m`,
/// `2h`, `1d`, also `ns` and `us`), several in descending order (`1h30m`), or ISO 8601 (`PT1M30S`,
/// `PT0.5S`, `P1D`).
/// A number without a unit is an error: its unit would be a guess.
Result<std::chrono::nanoseconds> ParseDuration(std::string_view text);

/// The shortest text that ParseDuration reads back as the same time, e.g. "1h30m".
std::string FormatDuration(std::chrono::nanoseconds duration);

}  // namespace weir
