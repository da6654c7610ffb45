#pragma once

// The resource of envoyproxy/ratelimit's control planes: one of its configuration files, as a
// message.

#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::xds {

inline constexpr std::string_view kRateLimitConfigType =
    "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/// A configuration as the text of an equivalent file.
struct RateLimitConfig {
  std::string name;
  std::string yaml;
};

/// An unknown field is an error, unless `lenient`: it may mean that something must not be
/// limited.
Result<RateLimitConfig> ReadRateLimitConfig(std::string_view message, bool lenient);

}  // namespace weir::xds
