#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/values.h"
#include "weir/result.h"

namespace weir::config {

/// Sets one value from texts. The error is for a person and repeats no secret.
using Apply = Status (*)(Config& config, Texts texts);

/// A setting and how it is set. Their table is the only place that lists all settings.
struct Setting {
  SettingInfo info;
  Apply apply;
};
std::span<const Setting> AllSettings();
const Setting* FindSetting(std::string_view key);

/// A part of that table, for the file that assembles it: the settings of the service, of slots and
/// notify, of the proxy, of telemetry, of the control plane, of programs with the
/// library, and of several stores.
std::span<const Setting> ServiceSettings();
std::span<const Setting> ProductSettings();
std::span<const Setting> ProxySettings();
std::span<const Setting> TelemetrySettings();
std::span<const Setting> XdsSettings();
std::span<const Setting> LibrarySettings();
std::span<const Setting> StoreSettings();
/// Finds the store that `store` names, and checks `stores` and `move`. Returns the errors.
std::vector<std::string> ResolveStores(Config& config);

}  // namespace weir::config
