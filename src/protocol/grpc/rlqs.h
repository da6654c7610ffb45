#pragma once

#include <memory>
#include <string_view>

#include "protocol/grpc/method.h"
#include "protocol/grpc/quota_streams.h"

namespace weir::grpc {

inline constexpr std::string_view kStreamRateLimitQuotasPath =
    "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";

/// envoy.service.rate_limit_quota.v3, which Envoy's rate_limit_quota filter uses. `streams` must
/// outlive it, and belongs to the same reactor.
std::unique_ptr<Method> MakeStreamRateLimitQuotas(QuotaStreams& streams);

}  // namespace weir::grpc
