#include "slots/calendar.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "base/number.h"

namespace weir::slots {
namespace {

constexpr int kDayMinutes = 24 * 60;
constexpr int kMaxGapDays = 1'100;  // more days than holidays can close
constexpr int kMaxJoinedDays = 14;
constexpr std::array<std::string_view, 7> kWeekdays = {"MON", "TUE", "WED", "THU",
                                                       "FRI", "SAT", "SUN"};

Error WrongCalendar(std::string_view field, std::string_view what) {
  return {Code::kInvalidArgument, std::string(field) + " " + std::string(what)};
}

std::optional<int> Weekday(std::string_view name) {
  const auto found = std::find(kWeekdays.begin(), kWeekdays.end(), name);
  if (found == kWeekdays.end()) return std::nullopt;
  return static_cast<int>(found - kWeekdays.begin());
}

// The number; -1 unless all of `text` is digits.
int DigitsOf(std::string_view text) {
  const auto number = ParseNumber<std::uint16_t>(text);
  return number ? *number : -1;
}

std::string TwoDigits(int number) {
  return std::string(number < 10 ? "0" : "") + std::to_string(number);
}

std::string_view NextWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

Status ReadSpecial(std::string_view word, Calendar& calendar) {
  const std::size_t at = word.find('@');
  Result<zone::Day> day = ParseDate(word.substr(0, at));
  if (!day.ok()) return day.error();
  int cut_off = 0;
  if (at != std::string_view::npos) {
    Result<int> minute = ParseTimeOfDay(word.substr(at + 1));
    if (!minute.ok()) return minute.error();
    cut_off = *minute;
  }
  calendar.special.emplace_back(*day, cut_off);
  return {};
}

}  // namespace

std::string_view WeekdayName(int weekday) { return kWeekdays[static_cast<std::size_t>(weekday)]; }

Result<std::uint8_t> ParseDays(std::string_view text) {
  unsigned days = 0;
  for (;;) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const std::optional<int> first = Weekday(part.substr(0, dash));
    const std::optional<int> last =
        dash == std::string_view::npos ? first : Weekday(part.substr(dash + 1));
    if (!first || !last) return WrongCalendar("days", "must be like MON-FRI or MON,WED,SAT");
    for (int day = *first;; day = (day + 1) % 7) {
      days |= 1U << static_cast<unsigned>(day);
      if (day == *last) break;
    }
    if (comma == text.size()) return static_cast<std::uint8_t>(days);
    text.remove_prefix(comma + 1);
  }
}

Result<int> ParseTimeOfDay(std::string_view text) {
  const bool shaped = text.size() == 5 && text[2] == ':';
  const int hour = shaped ? DigitsOf(text.substr(0, 2)) : -1;
  const int minute = shaped ? DigitsOf(text.substr(3)) : -1;
  if (hour < 0 || minute < 0 || minute > 59 || hour * 60 + minute > kDayMinutes) {
    return Error{Code::kInvalidArgument, "must be a time of day from 00:00 to 24:00"};
  }
  return hour * 60 + minute;
}

std::string FormatTimeOfDay(int minute) {
  return TwoDigits(minute / 60) + ":" + TwoDigits(minute % 60);
}

Result<zone::Day> ParseDate(std::string_view text) {
  const Error wrong{Code::kInvalidArgument, "must be a date such as 2025-12-25"};
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return wrong;
  const int year = DigitsOf(text.substr(0, 4));
  const int month = DigitsOf(text.substr(5, 2));
  const int day = DigitsOf(text.substr(8));
  if (year < 1970 || month < 0 || day < 0) return wrong;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return wrong;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

std::string FormatDate(zone::Day day) {
  const std::chrono::year_month_day date{
      std::chrono::sys_days(std::chrono::days(static_cast<int>(day)))};
  return std::to_string(static_cast<int>(date.year())) + "-" +
         TwoDigits(static_cast<int>(static_cast<unsigned>(date.month()))) + "-" +
         TwoDigits(static_cast<int>(static_cast<unsigned>(date.day())));
}

Result<Calendar> ParseCalendar(std::string_view text) {
  Calendar calendar;
  if (text.empty()) return calendar;
  if (text.size() > kMaxCalendarBytes) return WrongCalendar("calendar", "is too long");
  calendar.zone = NextWord(text);
  Result<std::uint8_t> days = ParseDays(NextWord(text));
  if (!days.ok()) return days.error();
  calendar.days = *days;
  const std::string_view hours = NextWord(text);
  const std::size_t dash = std::min(hours.find('-'), hours.size());
  Result<int> open = ParseTimeOfDay(hours.substr(0, dash));
  Result<int> cut_off = ParseTimeOfDay(hours.substr(std::min(dash + 1, hours.size())));
  if (!open.ok() || !cut_off.ok()) {
    return WrongCalendar("calendar", "must have opening hours such as 08:00-17:00 after its days");
  }
  calendar.open = *open;
  calendar.cut_off = *cut_off;
  for (std::string_view word = NextWord(text); !word.empty(); word = NextWord(text)) {
    if (Status s = ReadSpecial(word, calendar); !s.ok()) {
      return WrongCalendar("calendar",
                           "has '" + std::string(word) + "', which " + s.error().message);
    }
  }
  return calendar;
}

std::string FormatCalendar(const Calendar& calendar) {
  if (!calendar.any()) return {};
  std::string text = calendar.zone + " ";
  for (int day = 0; day < 7; ++day) {
    if ((calendar.days >> static_cast<unsigned>(day) & 1U) == 0) continue;
    if (text.back() != ' ') text += ',';
    text += WeekdayName(day);
  }
  text += " " + FormatTimeOfDay(calendar.open) + "-" + FormatTimeOfDay(calendar.cut_off);
  for (const auto& [day, cut_off] : calendar.special) {
    text += " " + FormatDate(day);
    if (cut_off > calendar.open) text += "@" + FormatTimeOfDay(cut_off);
  }
  return text;
}

Result<Calendar> CheckCalendar(Calendar calendar, Millis window_size) {
  if (!calendar.any()) return calendar;
  if (calendar.zone.size() > kMaxZoneBytes) return WrongCalendar("calendar.zone", "is too long");
  Result<zone::Zone> zone = zone::Zone::Find(calendar.zone);
  if (!zone.ok()) return WrongCalendar("calendar.zone", zone.error().message);
  if ((calendar.days & 0x7fU) == 0) return WrongCalendar("calendar.days", "must not be empty");
  if (calendar.open >= calendar.cut_off) {
    return WrongCalendar("calendar.cutOff", "must be later than calendar.open");
  }
  if (window_size > kMaxCalendarWindow) {
    return WrongCalendar("windowSize", "must be at most PT1H for a config with a calendar");
  }
  if ((calendar.cut_off - calendar.open) * Millis{60'000} < 2 * window_size) {
    return WrongCalendar("calendar.cutOff", "must be at least two windows after calendar.open");
  }
  if (calendar.special.size() > kMaxSpecialDays) {
    return WrongCalendar("calendar", "must not have more than " + std::to_string(kMaxSpecialDays) +
                                         " holidays and cut-offs");
  }
  for (auto& [day, cut_off] : calendar.special) {
    if (cut_off <= calendar.open) cut_off = 0;
  }
  std::sort(calendar.special.begin(), calendar.special.end());
  const auto twice =
      std::adjacent_find(calendar.special.begin(), calendar.special.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != calendar.special.end()) {
    return WrongCalendar("calendar", "has " + FormatDate(twice->first) + " twice");
  }
  return calendar;
}

OpenTimes::OpenTimes(Calendar calendar) : calendar_(std::move(calendar)) {
  Result<zone::Zone> zone = zone::Zone::Find(calendar_.zone);
  if (zone.ok()) zone_ = std::move(*zone);
}

// Empty if the calendar is closed that day.
OpenTime OpenTimes::OfDay(zone::Day day) const {
  int cut_off = (calendar_.days >> static_cast<unsigned>(zone::WeekdayOf(day)) & 1U) != 0
                    ? calendar_.cut_off
                    : 0;
  const auto special = std::lower_bound(calendar_.special.begin(), calendar_.special.end(),
                                        std::pair<zone::Day, int>{day, 0});
  if (special != calendar_.special.end() && special->first == day) {
    cut_off = std::min(cut_off, special->second);
  }
  if (cut_off <= calendar_.open) return {};
  return {zone_->At(day, calendar_.open), zone_->At(day, cut_off)};
}

std::optional<OpenTime> OpenTimes::At(Millis instant) {
  if (last_ && last_->from <= instant && instant < last_->until) return last_;
  if (!zone_) return std::nullopt;
  const zone::Day today = zone_->DayOf(instant);
  for (zone::Day day = today; day <= today + kMaxGapDays; ++day) {
    OpenTime open = OfDay(day);
    if (open.until <= instant || open.until <= open.from) continue;
    if (open.from > kMaxInstant) break;  // no event has a time beyond it
    for (int more = 1; more <= kMaxJoinedDays; ++more) {
      const OpenTime next = OfDay(day + more);
      if (next.from != open.until || next.until <= next.from) break;
      open.until = next.until;
    }
    open.until = std::min(open.until, kMaxInstant + 1);
    last_ = open;
    return last_;
  }
  return std::nullopt;
}

std::vector<OpenTime> OpenTimes::List(std::span<const Millis> instants, std::size_t count) {
  std::vector<OpenTime> times;
  for (const Millis instant : instants) {
    // Open times listed for an earlier instant that lie ahead of this one count towards it.
    const auto ahead =
        std::upper_bound(times.begin(), times.end(), instant,
                         [](Millis value, const OpenTime& time) { return value < time.until; });
    auto have = static_cast<std::size_t>(times.end() - ahead);
    Millis from = have == 0 ? instant : times.back().until;
    for (; have < count; ++have) {
      const std::optional<OpenTime> next = At(from);
      if (!next) break;
      times.push_back(*next);
      from = next->until;
    }
  }
  return times;
}

std::optional<UsableWindow> NextUsable(OpenTimes& open, Millis window, Millis size) {
  Millis at = window;
  for (;;) {
    const std::optional<OpenTime> time = open.At(at);
    if (!time) return std::nullopt;
    const Millis opening = time->from - time->from % size;
    const Millis start = std::max(window, opening);
    if (start + size <= time->until) {
      const Millis end = time->until - time->until % size;
      return UsableWindow{start, std::max(start, time->from), end - size};
    }
    at = time->until;
  }
}

}  // namespace weir::slots
