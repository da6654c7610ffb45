#include "base/instant.h"

#include <array>
#include <cstdio>

namespace weir {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr std::int64_t kDaySeconds = 86'400;
// The last whole year that 64 bits of nanoseconds reach.
constexpr int kLastYear = 2261;

/// Reads fixed numbers of digits off the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool Number(std::size_t digits, int& value) noexcept {
    if (text_.size() < digits) return false;
    value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return false;
      value = value * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(digits);
    return true;
  }

  bool Take(char wanted) noexcept {
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  /// The digits after a point, as nanoseconds; finer ones are dropped.
  bool Fraction(Nanos& nanos) noexcept {
    Nanos unit = kSecond;
    std::size_t digits = 0;
    for (; !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; ++digits) {
      unit /= 10;
      nanos += unit * (text_.front() - '0');
      text_.remove_prefix(1);
    }
    return digits > 0;
  }

  /// Z, ±hh, ±hhmm or ±hh:mm, in seconds east of Greenwich.
  bool Zone(std::int64_t& seconds) noexcept {
    seconds = 0;
    if (Take('Z') || Take('z')) return true;
    const bool west = Take('-');
    if (!west && !Take('+')) return false;
    int hours = 0;
    int minutes = 0;
    if (!Number(2, hours)) return false;
    if (!empty()) {
      Take(':');
      if (!Number(2, minutes)) return false;
    }
    if (hours > 23 || minutes > 59) return false;
    seconds = (hours * 60 + minutes) * 60;
    if (west) seconds = -seconds;
    return true;
  }

  bool empty() const noexcept { return text_.empty(); }

 private:
  std::string_view text_;
};

}  // namespace

std::int64_t DaysFromCivil(std::int64_t year, int month, int day) noexcept {
  // Counted in years that begin in March, so that a leap day is the last day of its year.
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719'468;
}

int DaysInMonth(std::int64_t year, int month) noexcept {
  constexpr std::array<int, 13> kDays = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12) return 0;
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays[static_cast<std::size_t>(month)];
}

std::optional<Nanos> ParseInstant(std::string_view text) noexcept {
  Reader in(text);
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  Nanos fraction = 0;
  std::int64_t zone = 0;
  if (!in.Number(4, year) || !in.Take('-') || !in.Number(2, month) || !in.Take('-') ||
      !in.Number(2, day) || !(in.Take('T') || in.Take('t') || in.Take(' '))) {
    return std::nullopt;
  }
  if (!in.Number(2, hour) || !in.Take(':') || !in.Number(2, minute) || !in.Take(':') ||
      !in.Number(2, second)) {
    return std::nullopt;
  }
  if (in.Take('.') && !in.Fraction(fraction)) return std::nullopt;
  if (!in.Zone(zone) || !in.empty()) return std::nullopt;
  // A leap second (:60) is taken as the second after.
  if (year < 1970 || year > kLastYear || day < 1 || day > DaysInMonth(year, month) || hour > 23 ||
      minute > 59 || second > 60) {
    return std::nullopt;
  }
  const std::int64_t seconds =
      DaysFromCivil(year, month, day) * kDaySeconds + (hour * 60 + minute) * 60 + second - zone;
  if (seconds < 0) return std::nullopt;
  return seconds * kSecond + fraction;
}

std::string FormatInstant(Nanos instant) {
  std::int64_t seconds = instant / kSecond;
  const std::int64_t millis = instant % kSecond / 1'000'000;
  const std::int64_t of_day = seconds % kDaySeconds;
  // The inverse of DaysFromCivil, for days from 1970 on.
  const std::int64_t days = seconds / kDaySeconds + 719'468;
  const std::int64_t era = days / 146'097;
  const std::int64_t of_era = days - era * 146'097;
  const std::int64_t year_of_era =
      (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted = (5 * day_of_year + 2) / 153;
  const std::int64_t day = day_of_year - (153 * shifted + 2) / 5 + 1;
  const std::int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
  const std::int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  std::array<char, 64> text{};
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  int size = std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d", number(year),
                           number(month), number(day), number(of_day / 3600),
                           number(of_day / 60 % 60), number(of_day % 60));
  std::string out(text.data(), static_cast<std::size_t>(size));
  if (millis != 0) {
    size = std::snprintf(text.data(), text.size(), ".%03d", number(millis));
    out.append(text.data(), static_cast<std::size_t>(size));
  }
  return out + 'Z';
}

}  // namespace weir
