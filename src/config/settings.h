#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "weir/result.h"

namespace weir::config {

/// Sets one thing from texts. The error is for a person and repeats no secret.
using Apply = Status (*)(Config& config, std::span<const std::string> texts);

/// A setting and how it is set. The table of them is the one place that knows all settings.
struct Setting {
  SettingInfo info;
  Apply apply;
};
std::span<const Setting> AllSettings();
const Setting* FindSetting(std::string_view key);

/// A part of that table, for the file that puts it together: the service's, that of slots and
/// notify, the proxy's, what is told of checks, the control plane's, that of programs with the
/// library, and several stores.
std::span<const Setting> ServiceSettings();
std::span<const Setting> ProductSettings();
std::span<const Setting> ProxySettings();
std::span<const Setting> TelemetrySettings();
std::span<const Setting> XdsSettings();
std::span<const Setting> LibrarySettings();
std::span<const Setting> StoreSettings();
/// Finds the store that `store` names, and checks `stores` and `move`. Returns what is wrong.
std::vector<std::string> ResolveStores(Config& config);

/// A URL of a store for limits. The text may hold a password, so only its scheme is repeated.
Status SetStoreUrl(std::string& target, const std::string& text);

/// How values are read, for the files of the parts.
Error Expected(std::string_view expected, std::string_view got);
/// `zero_allowed`: "off" and 0 are zero.
Result<std::chrono::milliseconds> ReadTime(std::string_view text, bool zero_allowed);
Result<bool> ReadSwitch(std::string_view text);
Result<std::int64_t> ReadWhole(std::string_view text, std::int64_t least, std::int64_t most);
/// Only the scheme is ever repeated: the text may hold a password.
Status SetUrl(std::string& target, std::span<const std::string> texts,
              std::initializer_list<std::string_view> schemes);
/// Header fields for a server, each "name: value". They are likely secrets, so no error repeats
/// them.
Status SetHeaderFields(std::vector<std::string>& target, std::span<const std::string> texts);
/// The name of a header field.
Status SetFieldName(std::string& target, const std::string& text);

}  // namespace weir::config
