#pragma once

#include <span>
#include <string>
#include <string_view>

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

}  // namespace weir::config
