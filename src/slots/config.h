#pragma once

#include <string_view>

#include "slots/slot.h"
#include "weir/result.h"

namespace weir::slots {

/// Checks the name of a config or tenant, or an event ID: 1 to `max_bytes` bytes of UTF-8 without
/// control characters. The error says what is wrong and begins with `field`.
Status CheckName(std::string_view field, std::string_view text, std::size_t max_bytes);

/// Checks an event's payload: at most kMaxPayloadBytes of UTF-8 without zero bytes.
Status CheckPayload(std::string_view payload);

/// Checks all numbers against their bounds and sorts the tenants, adding kOtherTenants with weight
/// 1 if there are tenants but not that one. The error uses the field's name on the wire.
Result<Config> CheckConfig(Config config);

/// The class that a tenant belongs to under this config: its own name if listed, else
/// kOtherTenants. Empty if the config has no shares.
std::string_view ClassOf(const Config& config, std::string_view tenant) noexcept;

}  // namespace weir::slots
