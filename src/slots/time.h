#pragma once

// Times and durations as people write them, and whole milliseconds as slots count them.

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::slots {

/// Milliseconds; for an instant, since the Unix epoch.
using Millis = std::int64_t;

/// 9999-12-31T23:59:59.999Z: the last moment that a four-digit year can name.
inline constexpr Millis kMaxInstant = 253'402'300'799'999;

/// Now, by this machine's clock.
Millis MachineMillis() noexcept;

/// "2025-06-01T12:00:00Z", "2025-06-01T14:00:00.5+02:00": ISO 8601 with date, time and zone (Z,
/// ±hh, ±hhmm, ±hh:mm); seconds and fraction may be missing. From 1970 to 9999. A fraction finer
/// than a millisecond is rounded up, so that a slot never lies before the requested time.
Result<Millis> ParseInstant(std::string_view text);

/// In UTC, the fraction only if there is one: "2025-06-01T12:00:00Z", "2025-06-01T12:00:00.250Z".
std::string FormatInstant(Millis instant);

/// ISO 8601 without years and months, whose length varies: "PT4S", "PT0.25S", "PT1H30M", "P1D",
/// "P1DT12H", "P2W". In whole milliseconds, greater than zero.
/// Also a number with a unit: "4s", "500ms", "1h30m".
Result<Millis> ParseDuration(std::string_view text);

/// "PT4S", "PT1H30M", "PT0.25S", "PT36H".
std::string FormatDuration(Millis duration);

}  // namespace weir::slots
