#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "protocol/grpc/decider.h"

namespace weir::grpc {

/// What the rate limit service asks Envoy to add to responses.
struct RlsOptions {
  bool x_ratelimit = true;  ///< X-RateLimit-Limit, -Remaining, -Reset
  bool retry_after = true;  ///< Retry-After, when over the limit
};

inline constexpr std::string_view kShouldRateLimitPath =
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// What one request may ask at most.
inline constexpr int kMaxDescriptors = 256;
inline constexpr int kMaxEntries = 64;

/// envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit.
std::unique_ptr<Method> MakeShouldRateLimit(Decider& decider, const RlsOptions& options);

}  // namespace weir::grpc
