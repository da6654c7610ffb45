#pragma once

// Timestamps as people and logs write them. All code that parses or formats one goes through here.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/clock.h"

namespace weir {

/// A date and time of the Gregorian calendar with its offset from UTC.
struct CivilTime {
  int year = 1970;
  int month = 1;
  int day = 1;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int zone_minutes = 0;  ///< east of Greenwich
};

/// Seconds since 1970 in UTC. Nothing for a date or time that does not exist, a zone beyond ±18
/// hours, or a moment before 1970. A leap second (:60) does not exist here: no clock that Weir
/// reads has one.
std::optional<std::int64_t> SecondsOf(const CivilTime& time) noexcept;

/// An ISO 8601 timestamp, to the nanosecond.
struct IsoInstant {
  std::int64_t seconds = 0;
  std::int64_t nanos = 0;
  bool finer = false;  ///< it had digits beyond nanoseconds
};

/// "2025-06-01T12:00:00Z", "2025-06-01T14:00:00.123456+02:00": date, time and zone (Z, ±hh, ±hhmm,
/// ±hh:mm). Seconds and fraction may be missing, a comma may replace the point and a space
/// the T. Years 1970 to 9999; nothing for anything else.
std::optional<IsoInstant> ReadIsoInstant(std::string_view text) noexcept;

/// Likewise, up to 2261, the last year that fits into 64 bits of nanoseconds.
std::optional<Nanos> ParseInstant(std::string_view text) noexcept;

/// In UTC: "2025-06-01T12:00:00Z", with three digits of a fraction if there is one (rounded down).
std::string FormatInstant(Nanos instant);

/// Likewise for milliseconds since 1970; `fraction` says whether ".000" is written as well.
enum class Fraction { kIfAny, kAlways };
std::string FormatMillis(std::int64_t millis, Fraction fraction);

}  // namespace weir
