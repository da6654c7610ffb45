#include "slots/time.h"

#include <chrono>
#include <optional>

#include "base/duration.h"
#include "base/got.h"
#include "base/instant.h"

namespace weir::slots {
namespace {

constexpr Millis kSecond = 1000;
constexpr Millis kMinute = 60 * kSecond;
constexpr Millis kHour = 60 * kMinute;

}  // namespace

Millis MachineMillis() noexcept {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             system_clock::now().time_since_epoch())
      .count();
}

Result<Millis> ParseInstant(std::string_view text) {
  const std::optional<IsoInstant> instant = ReadIsoInstant(text);
  if (!instant) {
    return Error{Code::kInvalidArgument,
                 "must be an ISO-8601 date and time from 1970 to 9999 with a zone, like "
                 "2025-06-01T12:00:00Z or 2025-06-01T14:00:00+02:00" +
                     Got(text)};
  }
  constexpr std::int64_t kNanosPerMilli = 1'000'000;
  const bool up = instant->finer || instant->nanos % kNanosPerMilli != 0;
  const Millis millis = instant->seconds * kSecond + instant->nanos / kNanosPerMilli + (up ? 1 : 0);
  if (millis > kMaxInstant) {
    return Error{Code::kInvalidArgument, "must be between the years 1970 and 9999" + Got(text)};
  }
  return millis;
}

std::string FormatInstant(Millis instant) { return FormatMillis(instant, Fraction::kIfAny); }

Result<Millis> ParseDuration(std::string_view text) {
  const Result<std::chrono::nanoseconds> span = weir::ParseDuration(text);
  constexpr std::chrono::milliseconds kStep{1};
  if (span.ok() && *span % kStep == std::chrono::nanoseconds(0)) return *span / kStep;
  return Error{Code::kInvalidArgument,
               "must be an ISO-8601 duration of whole milliseconds, more than zero, like PT4S, "
               "PT0.5S or PT1H30M, or a number with a unit, like 4s or 500ms" +
                   Got(text)};
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
