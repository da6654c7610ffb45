#include "slots/config.h"

#include <algorithm>
#include <string>

namespace weir::slots {
namespace {

// The length of the UTF-8 character at the front, or 0 if it is none.
std::size_t CharacterLength(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool outside = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
  return overlong || outside ? 0 : length;
}

Error Invalid(std::string_view field, std::string_view what) {
  return {Code::kInvalidArgument, std::string(field) + " " + std::string(what)};
}

Status CheckRange(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return Invalid(field, "must be between " + std::to_string(low) + " and " + std::to_string(high));
}

}  // namespace

Status CheckName(std::string_view field, std::string_view text, std::size_t max_bytes) {
  if (text.empty()) return Invalid(field, "must not be empty");
  if (text.size() > max_bytes) {
    return Invalid(field, "must not be longer than " + std::to_string(max_bytes) + " bytes");
  }
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    if (length == 0) return Invalid(field, "must be UTF-8 without control characters");
    text.remove_prefix(length);
  }
  return {};
}

Result<Config> CheckConfig(Config config) {
  if (Status s = CheckName("configName", config.name, kMaxNameBytes); !s.ok()) return s.error();
  if (config.window_size < 1 || config.window_size > kMaxWindowSize) {
    return Invalid("windowSize", "must be between PT0.001S and " + FormatDuration(kMaxWindowSize));
  }
  Status s = CheckRange("maxPerWindow", config.max_per_window, 1, kMaxPerWindow);
  if (!s.ok()) return s.error();
  s = CheckRange("headroom", config.headroom, 0, kMaxHeadroom);
  if (!s.ok()) return s.error();
  s = CheckRange("fairWindows", config.fair_windows, 0, kMaxHeadroom + 1);
  if (!s.ok()) return s.error();
  if (config.tenants.size() > kMaxTenants) {
    return Invalid("tenants", "must not be more than " + std::to_string(kMaxTenants));
  }
  bool has_others = config.tenants.empty();
  for (const auto& [name, weight] : config.tenants) {
    s = CheckName("tenants", name, kMaxNameBytes);
    if (!s.ok()) return s.error();
    s = CheckRange("tenants." + name, weight, 1, kMaxWeight);
    if (!s.ok()) return s.error();
    has_others = has_others || name == kOtherTenants;
  }
  if (!has_others) config.tenants.emplace_back(kOtherTenants, 1);
  std::sort(config.tenants.begin(), config.tenants.end());
  const auto twice =
      std::adjacent_find(config.tenants.begin(), config.tenants.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != config.tenants.end()) return Invalid("tenants." + twice->first, "is given twice");
  Result<Calendar> calendar = CheckCalendar(std::move(config.calendar), config.window_size);
  if (!calendar.ok()) return calendar.error();
  config.calendar = std::move(*calendar);
  return config;
}

std::string_view ClassOf(const Config& config, std::string_view tenant) noexcept {
  if (config.tenants.empty()) return {};
  for (const auto& [name, weight] : config.tenants) {
    if (name == tenant) return name;
  }
  return kOtherTenants;
}

}  // namespace weir::slots
