#pragma once

// Decisions → envoy.service.ratelimit.v3.RateLimitResponse, as envoyproxy/ratelimit fills it.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "envoy/service/ratelimit/v3/rls.pb.h"
#include "limiter/limiter.h"
#include "protocol/grpc/rls.h"
#include "weir/clock.h"

namespace weir::grpc {

/// Builds one answer. Not thread-safe; reused for one answer after the other.
class RlsResponse {
 public:
  using Request = envoy::service::ratelimit::v3::RateLimitRequest;
  using Response = envoy::service::ratelimit::v3::RateLimitResponse;

  explicit RlsResponse(const RlsOptions& options) : options_(options) {}

  /// The answer to `request`, whose checks are decided. Valid until the next call.
  const Response& Of(const Request& request, std::span<const limiter::Check> checks);

 private:
  void AddStatuses(const Request& request, std::span<const limiter::Check> checks);
  void AddStatus(const envoy::extensions::common::ratelimit::v3::RateLimitDescriptor& descriptor,
                 const limiter::PolicyVerdict* verdict);
  void RefuseUnmatched();
  void AddHeaders(std::span<const limiter::Check> checks);
  void AddLimitHeaders();
  void AddHeader(std::string_view name, std::string_view value);
  void AddMetadata(const Request& request);
  void AddOwnMetadata();

  const RlsOptions& options_;
  Response response_;
  Nanos now_ = 0;
  const limiter::PolicyVerdict* shown_ = nullptr;  // the one that the headers report
  int shown_status_ = 0;                           // its place in the answer
  std::vector<int> over_quota_;                    // descriptors over a limit in quota mode
  std::size_t quotas_ = 0;                         // descriptors with a limit in that mode
  std::vector<std::string_view> metadata_;         // of limits that are not over, as JSON
};

/// Writes a quota's window as the largest unit that divides it, times a multiplier unless it is 1.
/// Leaves UNKNOWN for windows that are not whole seconds, and for a concurrency quota.
void SetWindow(const Quota& quota,
               envoy::service::ratelimit::v3::RateLimitResponse::RateLimit& limit);

/// The length of a unit of a request's own limit, in seconds; 0 if it is unknown.
std::int64_t SecondsOf(int unit) noexcept;

}  // namespace weir::grpc
