#include "slots/config.h"

#include <algorithm>
#include <string>

#include "base/got.h"
#include "base/utf8.h"

namespace weir::slots {
namespace {

Error Invalid(std::string_view field, std::string_view what) {
  return {Code::kInvalidArgument, std::string(field) + " " + std::string(what)};
}

Status CheckRange(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return Invalid(field, "must be between " + std::to_string(low) + " and " + std::to_string(high) +
                            ", got " + std::to_string(value));
}

}  // namespace

Status CheckName(std::string_view field, std::string_view text, std::size_t max_bytes) {
  if (text.empty()) return Invalid(field, "must not be empty");
  if (text.find_first_not_of(' ') == text.npos) return Invalid(field, "must not be blank");
  if (text.size() > max_bytes) {
    return Invalid(field, "must not be longer than " + std::to_string(max_bytes) + " bytes");
  }
  if (!IsPrintableUtf8(text)) return Invalid(field, "must be UTF-8 without control characters");
  return {};
}

Status CheckPayload(std::string_view payload) {
  if (payload.size() > kMaxPayloadBytes) {
    return Invalid("payload",
                   "must not be longer than " + std::to_string(kMaxPayloadBytes) + " bytes");
  }
  if (payload.find('\0') != std::string_view::npos) {
    return Invalid("payload", "must not contain the character U+0000");
  }
  while (!payload.empty()) {
    const std::size_t length = Utf8SequenceLength(payload);
    if (length == 0) return Invalid("payload", "must be UTF-8");
    payload.remove_prefix(length);
  }
  return {};
}

Result<Config> CheckConfig(Config config) {
  if (Status s = CheckName("configName", config.name, kMaxNameBytes); !s.ok()) return s.error();
  if (config.window_size < 1 || config.window_size > kMaxWindowSize) {
    return Invalid("windowSize", "must be between PT0.001S and " + FormatDuration(kMaxWindowSize) +
                                     Got(FormatDuration(config.window_size)));
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
