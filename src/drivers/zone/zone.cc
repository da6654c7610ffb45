#include "drivers/zone/zone.h"

#include <absl/time/civil_time.h>
#include <absl/time/time.h>

#include <algorithm>

#include "base/ascii.h"

namespace weir::zone {
namespace {

/// Accepts names of zone files, but never paths out of the database. To the library, `file:` and
/// `libc:` are prefixes: a path of any file, which may be one that blocks when opened, and the
/// machine's own zone.
bool IsName(std::string_view name) noexcept {
  const bool offset = name.starts_with("Fixed/UTC");
  const auto plain = [offset](char c) {
    return IsLetterOrDigit(c) || c == '_' || c == '+' || c == '-' || c == '/' ||
           (c == ':' && offset);
  };
  return !name.empty() && name.front() != '/' && name != "localtime" &&
         std::all_of(name.begin(), name.end(), plain);
}

}  // namespace

struct Zone::Rules {
  absl::TimeZone zone;
};

Result<Zone> Zone::Find(const std::string& name) {
  auto rules = std::make_shared<Rules>();
  if (!IsName(name) || !absl::LoadTimeZone(name, &rules->zone)) {
    return Error{Code::kInvalidArgument,
                 "must be a time zone such as Europe/Berlin or UTC, but is '" + name + "'"};
  }
  return Zone(std::move(rules));
}

Day Zone::DayOf(Millis instant) const {
  return absl::ToCivilDay(absl::FromUnixMillis(instant), rules_->zone) - absl::CivilDay();
}

int Zone::MinuteOf(Millis instant) const {
  const absl::CivilMinute now = absl::ToCivilMinute(absl::FromUnixMillis(instant), rules_->zone);
  return now.hour() * 60 + now.minute();
}

Millis Zone::At(Day day, int minute) const {
  const absl::CivilMinute wanted = absl::CivilMinute(absl::CivilDay() + day) + minute;
  const absl::TimeZone::TimeInfo found = rules_->zone.At(absl::CivilSecond(wanted));
  const bool skipped = found.kind == absl::TimeZone::TimeInfo::SKIPPED;
  return absl::ToUnixMillis(skipped ? found.trans : found.pre);
}

}  // namespace weir::zone
