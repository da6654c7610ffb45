#pragma once

// Moments as people and logs write them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/clock.h"

namespace weir {

/// Days from 1970-01-01 to a date of the Gregorian calendar. Requires 1 <= month <= 12.
std::int64_t DaysFromCivil(std::int64_t year, int month, int day) noexcept;

/// Days in a month; 0 for a month that does not exist.
int DaysInMonth(std::int64_t year, int month) noexcept;

/// "2025-06-01T12:00:00Z", "2025-06-01T14:00:00.123456+02:00": date, time and zone (Z, ±hh, ±hhmm,
/// ±hh:mm); the fraction may be missing, and a space may stand for the T. From 1970 to 2261;
/// nothing for anything else.
std::optional<Nanos> ParseInstant(std::string_view text) noexcept;

/// In UTC: "2025-06-01T12:00:00Z", with three digits of a fraction if there is one (rounded down).
std::string FormatInstant(Nanos instant);

}  // namespace weir
