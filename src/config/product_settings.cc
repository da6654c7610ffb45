// Settings of the slot scheduler and the notification gateway.

#include <algorithm>
#include <chrono>

#include "config/settings.h"
#include "config/values.h"

namespace weir::config {
namespace {

using std::chrono::milliseconds;

// 100/60m: 100 in 60 minutes.
Status SetDefaultCap(Config::Notify& notify, std::string_view text) {
  if (text == "off") {
    notify.default_limit = 0;
    return {};
  }
  const std::size_t slash = std::min(text.find('/'), text.size());
  const Result<std::int64_t> limit = ReadWhole(text.substr(0, slash), 1, 1'000'000'000);
  const Result<milliseconds> window =
      ReadTime(text.substr(std::min(slash + 1, text.size())), false);
  constexpr milliseconds kMinute = std::chrono::minutes(1);
  if (!limit.ok() || !window.ok() || *window % kMinute != milliseconds(0) ||
      *window > std::chrono::hours(8760)) {
    return Expected("messages and whole minutes, at most a year, such as 100/60m, or off", text);
  }
  notify.default_limit = *limit;
  notify.default_window = *window / kMinute;
  return {};
}

// clang-format off
const Setting kProductSettings[] = {
    {{"slots.store", "--slots-store", "Where slots are kept: sqlite: or postgres:// (sqlite:)"},
     [](Config& c, Texts t) { return SetUrl(c.slots.store, t, {"sqlite:", "postgres://", "postgresql://"}); }},
    {{"slots.keep", "", "How long done and cancelled events stay in the live tables; off: forever"},
     [](Config& c, Texts t) { return Set(c.slots.keep, ReadTime(t[0], true)); }},
    {{"slots.keep_ids", "", "How long the archive keeps their IDs; off: forever"},
     [](Config& c, Texts t) { return Set(c.slots.keep_ids, ReadTime(t[0], true)); }},
    {{"notify.store", "--notify-store", "Where notifications are kept: sqlite: or postgres:// (sqlite:)"},
     [](Config& c, Texts t) { return SetUrl(c.notify.store, t, {"sqlite:", "postgres://", "postgresql://"}); }},
    {{"notify.cache", "--notify-cache", "Cache for notifications: redis://, or empty for none"},
     [](Config& c, Texts t) -> Status {
       if (t[0].empty()) { c.notify.cache.clear(); return {}; }
       return SetUrl(c.notify.cache, t, {"redis://", "rediss://"});
     }},
    {{"notify.broker", "--notify-broker", "Broker: embedded: or kafka://host:9092 (embedded:)"},
     [](Config& c, Texts t) { return SetUrl(c.notify.broker, t, {"embedded:", "kafka://"}); }},
    {{"notify.providers", "", "Providers that deliver, each CHANNEL=URL or URL: console:, https://, smtp://", true},
     [](Config& c, Texts t) -> Status { c.notify.providers.assign(t.begin(), t.end()); return {}; }},
    {{"notify.token", "", "Bearer token for the webhooks of notifications"},
     [](Config& c, Texts t) -> Status { c.notify.token = t[0]; return {}; }},
    {{"notify.attempts", "", "Attempts before a message becomes a dead letter, unless the provider is down (embedded)"},
     [](Config& c, Texts t) { return Set(c.notify.attempts, ReadWhole(t[0], 1, 20)); }},
    {{"notify.default_cap", "", "Cap of users without one, such as 100/60m; off: they are refused"},
     [](Config& c, Texts t) { return SetDefaultCap(c.notify, t[0]); }},
};
// clang-format on

}  // namespace

std::span<const Setting> ProductSettings() { return kProductSettings; }

}  // namespace weir::config
