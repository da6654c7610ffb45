#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "protocol/grpc/decider.h"
#include "weir/clock.h"

namespace weir::grpc {

/// What the rate limit service adds to its responses. Nothing by default: Envoy writes its own
/// headers, and would send both.
struct RlsOptions {
  /// The three below, Retry-After when over the limit, and X-RateLimit-Degraded when the store did
  /// not decide.
  bool headers = false;
  std::string limit_header = "RateLimit-Limit";
  std::string remaining_header = "RateLimit-Remaining";
  std::string reset_header = "RateLimit-Reset";
  bool dynamic_metadata = false;
  /// For when the window of an untouched key ends. Null: SystemClock.
  const Clock* clock = nullptr;
};

inline constexpr std::string_view kShouldRateLimitPath =
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// The most that one request may contain.
inline constexpr int kMaxDescriptors = 256;
inline constexpr int kMaxEntries = 64;

/// envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit.
std::unique_ptr<Method> MakeShouldRateLimit(Decider& decider, const RlsOptions& options);

}  // namespace weir::grpc
