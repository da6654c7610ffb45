#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weir/result.h"

namespace weir::zone {

/// Milliseconds since the Unix epoch.
using Millis = std::int64_t;
/// Days since 1970-01-01, in local calendar dates.
using Day = std::int64_t;

/// 0 is Monday.
constexpr int WeekdayOf(Day day) noexcept { return static_cast<int>(((day + 3) % 7 + 7) % 7); }

/// A time zone of the IANA database ("Europe/Berlin"), as installed on the machine.
///
/// A value; thread-safe to read.
class Zone {
 public:
  /// kInvalidArgument: there is no such zone.
  static Result<Zone> Find(const std::string& name);

  /// The local date.
  Day DayOf(Millis instant) const;
  /// The local time in minutes since midnight, 0 to 1439.
  int MinuteOf(Millis instant) const;
  /// The first moment of `day` at which local time is `minute` or later: in an hour that is
  /// skipped the moment of the change, in one that is repeated the first of the two. `minute` may
  /// be 1440, the end of the day.
  Millis At(Day day, int minute) const;

 private:
  struct Rules;
  explicit Zone(std::shared_ptr<const Rules> rules) : rules_(std::move(rules)) {}

  std::shared_ptr<const Rules> rules_;
};

}  // namespace weir::zone
