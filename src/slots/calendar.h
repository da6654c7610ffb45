#pragma once

// Business time: on which days, and between which times of day in the bank's zone, events may be
// executed. A calendar is plain data; OpenTimes answers questions about it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drivers/zone/zone.h"
#include "slots/time.h"
#include "weir/result.h"

namespace weir::slots {

inline constexpr std::size_t kMaxSpecialDays = 1'000;
inline constexpr std::size_t kMaxZoneBytes = 64;
inline constexpr std::size_t kMaxCalendarBytes = 32 * 1024;
/// A calendar's windows must not be longer, so that little time is lost at opening and cut-off.
inline constexpr Millis kMaxCalendarWindow = 3'600'000;
/// How many open times a search for a slot goes through.
inline constexpr std::size_t kMaxOpenTimes = 32;

struct Calendar {
  std::string zone = {};  ///< IANA; empty: no calendar, always open
  std::uint8_t days = 0;  ///< bit 0 is Monday
  int open = 0;           ///< minutes since midnight
  int cut_off = 24 * 60;  ///< nothing is executed from this minute on
  /// Days with a cut-off of their own, sorted; a cut-off that is not after `open` means a holiday.
  std::vector<std::pair<zone::Day, int>> special = {};

  bool any() const noexcept { return !zone.empty(); }
  friend bool operator==(const Calendar&, const Calendar&) = default;
};

/// ZONE DAYS OPEN-CUTOFF [DATE | DATE@CUTOFF]…, as stores keep it and the command line accepts it:
/// "Europe/Berlin MON-FRI 08:00-17:00 2025-12-25 2025-12-24@12:00". Empty text: no calendar.
Result<Calendar> ParseCalendar(std::string_view text);
std::string FormatCalendar(const Calendar& calendar);

/// "MON", "MON-FRI", "MON,WED-FRI" ⇄ the bits of Calendar::days.
Result<std::uint8_t> ParseDays(std::string_view text);
/// "08:00", up to "24:00", in minutes.
Result<int> ParseTimeOfDay(std::string_view text);
std::string FormatTimeOfDay(int minute);
/// "2025-12-25".
Result<zone::Day> ParseDate(std::string_view text);
std::string FormatDate(zone::Day day);
/// "MON" for 0.
std::string_view WeekdayName(int weekday);

/// Sorts the special days and checks everything, including the limits for windows of `window_size`.
/// The error uses the field's name on the wire.
Result<Calendar> CheckCalendar(Calendar calendar, Millis window_size);

/// [from, until)
struct OpenTime {
  Millis from = 0;
  Millis until = 0;

  friend bool operator==(const OpenTime&, const OpenTime&) = default;
};

/// When a calendar is open. Consecutive days without a break are one open time.
///
/// Not thread-safe: caches the last result.
class OpenTimes {
 public:
  /// `calendar` must have been checked. If the machine no longer has its zone, it is never open.
  explicit OpenTimes(Calendar calendar);

  /// The open time that `instant` lies in, or the next one; nullopt if none follows for some years.
  std::optional<OpenTime> At(Millis instant);

  /// `count` open times for each of `instants`, which must be sorted; no duplicates, in order.
  std::vector<OpenTime> List(std::span<const Millis> instants, std::size_t count);

 private:
  OpenTime OfDay(zone::Day day) const;

  const Calendar calendar_;
  std::optional<zone::Zone> zone_;
  std::optional<OpenTime> last_;
};

/// A window that may be used, and the last one of the same open time.
struct UsableWindow {
  Millis start = 0;
  Millis from = 0;  ///< in the window, after its start only if it opens in the middle
  Millis last = 0;  ///< the start of the last window that ends within the open time
};

/// The first window of this size that does not begin before `window`, is usable from its opening
/// on, and ends before the cut-off; nullopt if there is none for some years.
std::optional<UsableWindow> NextUsable(OpenTimes& open, Millis window, Millis size);

}  // namespace weir::slots
