#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/values.h"
#include "weir/result.h"

namespace weir::config {

/// Sets one thing from texts. The error is for a person and repeats no secret.
using Apply = Status (*)(Config& config, Texts texts);

/// A setting and how it is set. The table of them is the one place that knows all settings.
struct Setting {
  SettingInfo info;
  Apply apply;
};
std::span<const Setting> AllSettings();
const Setting* FindSetting(std::string_view key);

/// A part of that table, for the file that puts it together: the service's, that of slots and
/// notify, the proxy's, telemetry, the control plane's, that of programs with the
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

}  // namespace weir::config
