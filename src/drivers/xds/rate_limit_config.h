#pragma once

// The resource of envoyproxy/ratelimit's control planes: one of its configuration files, as a
// message.

#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::xds {

inline constexpr std::string_view kRateLimitConfigType =
    "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/// A configuration as the text of the file that says the same.
struct RateLimitConfig {
  std::string name;
  std::string yaml;
};

/// A field that is not known is an error, unless `lenient`: it may mean that something is not to be
/// limited.
Result<RateLimitConfig> ReadRateLimitConfig(std::string_view message, bool lenient);

}  // namespace weir::xds
