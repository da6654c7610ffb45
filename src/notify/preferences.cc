#include "notify/preferences.h"

#include <array>
#include <cstdio>
#include <utility>

#include "base/got.h"
#include "drivers/zone/zone.h"

namespace weir::notify {
namespace {

constexpr int kMinutesPerDay = 24 * 60;
constexpr Micros kMicrosPerMilli = 1000;

Error Wrong(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

}  // namespace

Result<int> ParseTimeOfDay(std::string_view text) {
  const auto digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '9'; };
  if (text.size() == 5 && text[2] == ':' && digit(0) && digit(1) && digit(3) && digit(4)) {
    const int hour = (text[0] - '0') * 10 + (text[1] - '0');
    const int minute = (text[3] - '0') * 10 + (text[4] - '0');
    if (hour < 24 && minute < 60) return hour * 60 + minute;
  }
  return Wrong("must be a time of the day such as 22:00" + Got(text));
}

std::string FormatTimeOfDay(int minutes) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%02d:%02d", minutes / 60 % 24, minutes % 60);
  return text.data();
}

Status CheckPreferences(const Preferences& preferences) {
  if (Status s = CheckUserId(preferences.user_id); !s.ok()) return s;
  if (preferences.opted_out.size() > kMaxOptOuts) {
    return Wrong("optOut must not have more than " + std::to_string(kMaxOptOuts) + " channels");
  }
  for (const std::string& channel : preferences.opted_out) {
    if (channel == "*") continue;
    if (Status s = CheckChannel(channel); !s.ok()) return Wrong("optOut: " + s.error().message);
  }
  if (!preferences.quiet) return {};
  const QuietHours& quiet = *preferences.quiet;
  for (const int minute : {quiet.from, quiet.to}) {
    if (minute < 0 || minute >= kMinutesPerDay) return Wrong("quietHours must be times of the day");
  }
  if (quiet.from == quiet.to) return Wrong("quietHours must not begin and end at the same time");
  if (quiet.zone.size() > kMaxZoneBytes) return Wrong("quietHours.zone is too long");
  Result<zone::Zone> zone = zone::Zone::Find(quiet.zone);
  if (!zone.ok()) return Wrong("quietHours.zone " + zone.error().message);
  return {};
}

Micros EndOfQuiet(const QuietHours& quiet, Micros now) {
  const Result<zone::Zone> zone = zone::Zone::Find(quiet.zone);
  // The zone is no longer known (another machine's database): sending now is better than not
  // sending at all.
  if (!zone.ok()) return now;
  const zone::Millis instant = now / kMicrosPerMilli;
  const int minute = zone->MinuteOf(instant);
  const zone::Day day = zone->DayOf(instant);
  const bool over_midnight = quiet.from > quiet.to;
  const bool evening = minute >= quiet.from && (over_midnight || minute < quiet.to);
  const bool morning = over_midnight && minute < quiet.to;
  if (!evening && !morning) return now;
  const zone::Day ends = evening && over_midnight ? day + 1 : day;
  // In an hour that is repeated the first end counts, so `now` may be after it.
  return std::max(now, zone->At(ends, quiet.to) * kMicrosPerMilli);
}

std::string JoinChannels(const std::vector<std::string>& channels) {
  std::string joined;
  for (const std::string& channel : channels) joined += (joined.empty() ? "" : ",") + channel;
  return joined;
}

std::vector<std::string> SplitChannels(std::string_view text) {
  std::vector<std::string> channels;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    channels.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return channels;
}

}  // namespace weir::notify
