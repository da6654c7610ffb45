#include "slots/time.h"

#include <chrono>
#include <limits>
#include <optional>

#include "base/duration.h"
#include "base/instant.h"

namespace weir::slots {
namespace {

constexpr Millis kSecond = 1000;
constexpr Millis kMinute = 60 * kSecond;
constexpr Millis kHour = 60 * kMinute;
constexpr Millis kDay = 24 * kHour;
constexpr std::size_t kMaxFractionDigits = 18;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Takes a text apart from the left. Not thread-safe.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  bool Take(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view Digits() {
    std::size_t count = 0;
    while (count < rest_.size() && IsDigit(rest_[count])) ++count;
    const std::string_view digits = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return digits;
  }

 private:
  std::string_view rest_;
};

struct Decimals {
  Millis millis = 0;
  bool finer = false;  // there was more than whole milliseconds
};

std::optional<Decimals> ReadDecimals(Reader& reader) {
  const std::string_view digits = reader.Digits();
  if (digits.empty() || digits.size() > kMaxFractionDigits) return std::nullopt;
  Decimals fraction;
  for (std::size_t i = 0; i < std::max<std::size_t>(digits.size(), 3); ++i) {
    const int digit = i < digits.size() ? digits[i] - '0' : 0;
    if (i < 3) {
      fraction.millis = fraction.millis * 10 + digit;
    } else {
      fraction.finer = fraction.finer || digit != 0;
    }
  }
  return fraction;
}

std::optional<Millis> UnitOf(char letter, bool in_time) {
  switch (letter) {
    case 'W':
      return in_time ? std::nullopt : std::optional<Millis>(7 * kDay);
    case 'D':
      return in_time ? std::nullopt : std::optional<Millis>(kDay);
    case 'H':
      return in_time ? std::optional<Millis>(kHour) : std::nullopt;
    case 'M':
      return in_time ? std::optional<Millis>(kMinute) : std::nullopt;
    case 'S':
      return in_time ? std::optional<Millis>(kSecond) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// One "30M" of a duration.
std::optional<Millis> ReadPart(Reader& reader, bool in_time, Millis& unit) {
  const std::string_view digits = reader.Digits();
  if (digits.empty() || digits.size() > 12) return std::nullopt;
  Millis value = 0;
  for (char digit : digits) value = value * 10 + (digit - '0');
  Decimals fraction;
  if (reader.Take('.') || reader.Take(',')) {
    const auto read = ReadDecimals(reader);
    // Only seconds have a fraction, and no finer one than milliseconds.
    if (!read || read->finer || reader.peek() != 'S') return std::nullopt;
    fraction = *read;
  }
  const auto found = UnitOf(reader.peek(), in_time);
  if (!found || *found >= unit) return std::nullopt;  // each unit once, the largest first
  unit = *found;
  reader.Take(reader.peek());
  if (value > kMaxInstant / unit) return std::nullopt;
  return value * unit + fraction.millis;
}

std::optional<Millis> ReadDuration(std::string_view text) {
  Reader reader(text);
  if (!reader.Take('P')) return std::nullopt;
  Millis total = 0;
  Millis unit = std::numeric_limits<Millis>::max();
  bool in_time = false;
  bool any = false;
  while (!reader.done()) {
    if (!in_time && reader.Take('T')) {
      in_time = true;
      any = false;  // "PT" and "P1DT" are not durations
      continue;
    }
    const auto part = ReadPart(reader, in_time, unit);
    if (!part) return std::nullopt;
    total += *part;
    any = true;
  }
  if (!any || total <= 0 || total > kMaxInstant) return std::nullopt;
  return total;
}

}  // namespace

Result<Millis> ParseInstant(std::string_view text) {
  const std::optional<IsoInstant> instant = ReadIsoInstant(text);
  if (!instant) {
    return Error{Code::kInvalidArgument,
                 "must be an ISO-8601 date and time from 1970 to 9999 with a zone, like "
                 "2025-06-01T12:00:00Z or 2025-06-01T14:00:00+02:00"};
  }
  constexpr std::int64_t kNanosPerMilli = 1'000'000;
  const bool up = instant->finer || instant->nanos % kNanosPerMilli != 0;
  const Millis millis = instant->seconds * kSecond + instant->nanos / kNanosPerMilli + (up ? 1 : 0);
  if (millis > kMaxInstant) {
    return Error{Code::kInvalidArgument, "must lie between the years 1970 and 9999"};
  }
  return millis;
}

std::string FormatInstant(Millis instant) { return FormatMillis(instant, Fraction::kIfAny); }

Result<Millis> ParseDuration(std::string_view text) {
  if (const auto duration = ReadDuration(text)) return *duration;
  // With a unit, as policies have it: 4s, 500ms, 1h30m.
  const Result<std::chrono::nanoseconds> span = weir::ParseDuration(text);
  constexpr std::chrono::milliseconds kStep{1};
  if (span.ok() && !text.starts_with('P') && *span % kStep == std::chrono::nanoseconds(0)) {
    return *span / kStep;
  }
  return Error{Code::kInvalidArgument,
               "must be an ISO-8601 duration of whole milliseconds, more than zero, like PT4S, "
               "PT0.5S or PT1H30M, or a number with a unit, like 4s or 500ms"};
}

std::string FormatDuration(Millis duration) {
  std::string out = "PT";
  if (duration >= kHour) out += std::to_string(duration / kHour) + "H";
  if (duration % kHour >= kMinute) out += std::to_string(duration % kHour / kMinute) + "M";
  const Millis rest = duration % kMinute;
  if (rest == 0 && duration > 0) return out;
  out += std::to_string(rest / kSecond);
  if (Millis fraction = rest % kSecond; fraction != 0) {
    out += '.';
    for (Millis digit = 100; fraction > 0; digit /= 10) {
      out += static_cast<char>('0' + fraction / digit);
      fraction %= digit;
    }
  }
  return out + "S";
}

}  // namespace weir::slots
