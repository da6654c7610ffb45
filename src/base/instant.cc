#include "base/instant.h"

#include <array>
#include <chrono>
#include <cstdio>

namespace weir {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::milliseconds;
using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr Nanos kSecond = 1'000'000'000;
constexpr std::int64_t kDaySeconds = 86'400;
constexpr std::size_t kMaxFractionDigits = 18;
constexpr std::int64_t kLastNanosSecond = 9'214'646'399;  // 2261-12-31T23:59:59Z

/// Parses a text from left to right.
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

  bool empty() const noexcept { return text_.empty(); }

 private:
  std::string_view text_;
};

bool ReadDate(Reader& in, CivilTime& time) noexcept {
  return in.Number(4, time.year) && in.Take('-') && in.Number(2, time.month) && in.Take('-') &&
         in.Number(2, time.day);
}

bool ReadFraction(Reader& in, IsoInstant& instant) noexcept {
  Nanos unit = kSecond;
  std::size_t digits = 0;
  for (int digit = 0; in.Number(1, digit); ++digits) {
    unit /= 10;
    instant.nanos += unit * digit;
    instant.finer = instant.finer || (unit == 0 && digit != 0);
  }
  return digits > 0 && digits <= kMaxFractionDigits;
}

bool ReadTime(Reader& in, CivilTime& time, IsoInstant& instant) noexcept {
  if (!in.Number(2, time.hour) || !in.Take(':') || !in.Number(2, time.minute)) return false;
  if (!in.Take(':')) return true;
  if (!in.Number(2, time.second)) return false;
  return !(in.Take('.') || in.Take(',')) || ReadFraction(in, instant);
}

bool ReadZone(Reader& in, CivilTime& time) noexcept {
  if (in.Take('Z') || in.Take('z')) return true;
  const bool west = in.Take('-');
  if (!west && !in.Take('+')) return false;
  int hours = 0;
  int minutes = 0;
  if (!in.Number(2, hours)) return false;
  if (!in.empty()) {
    in.Take(':');
    if (!in.Number(2, minutes) || minutes > 59) return false;
  }
  time.zone_minutes = (hours * 60 + minutes) * (west ? -1 : 1);
  return true;
}

}  // namespace

std::optional<std::int64_t> SecondsOf(const CivilTime& time) noexcept {
  constexpr int kFarthestZone = 18 * 60;
  const year_month_day date(std::chrono::year(time.year),
                            std::chrono::month(static_cast<unsigned>(time.month)),
                            std::chrono::day(static_cast<unsigned>(time.day)));
  if (!date.ok() || time.hour > 23 || time.minute > 59 || time.second > 59 ||
      time.zone_minutes < -kFarthestZone || time.zone_minutes > kFarthestZone) {
    return std::nullopt;
  }
  const std::int64_t seconds = sys_days(date).time_since_epoch().count() * kDaySeconds +
                               (time.hour * 60 + time.minute - time.zone_minutes) * 60 +
                               time.second;
  return seconds < 0 ? std::nullopt : std::optional(seconds);
}

std::optional<IsoInstant> ReadIsoInstant(std::string_view text) noexcept {
  Reader in(text);
  CivilTime time;
  IsoInstant instant;
  if (!ReadDate(in, time) || !(in.Take('T') || in.Take('t') || in.Take(' ')) ||
      !ReadTime(in, time, instant) || !ReadZone(in, time) || !in.empty()) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> seconds = SecondsOf(time);
  if (!seconds) return std::nullopt;
  instant.seconds = *seconds;
  return instant;
}

std::optional<Nanos> ParseInstant(std::string_view text) noexcept {
  const std::optional<IsoInstant> instant = ReadIsoInstant(text);
  if (!instant || instant->seconds > kLastNanosSecond) return std::nullopt;
  return instant->seconds * kSecond + instant->nanos;
}

std::string FormatMillis(std::int64_t millis, Fraction fraction) {
  const std::chrono::sys_time<milliseconds> moment{milliseconds(millis)};
  const auto day = floor<days>(moment);
  const year_month_day date(day);
  const auto of_day = static_cast<int>((moment - day).count());
  std::array<char, 64> text{};
  int size = std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d",
                           static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                           static_cast<unsigned>(date.day()), of_day / 3'600'000,
                           of_day / 60'000 % 60, of_day / 1000 % 60);
  std::string out(text.data(), static_cast<std::size_t>(size));
  if (fraction == Fraction::kAlways || of_day % 1000 != 0) {
    size = std::snprintf(text.data(), text.size(), ".%03d", of_day % 1000);
    out.append(text.data(), static_cast<std::size_t>(size));
  }
  return out + 'Z';
}

std::string FormatInstant(Nanos instant) {
  return FormatMillis(instant / 1'000'000, Fraction::kIfAny);
}

}  // namespace weir
