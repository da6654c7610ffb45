#pragma once

// What CL.THROTTLE and THROTTLE have charged to a key: a bucket apart from those of policies, whose
// quota comes with each command and is not known otherwise.

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "limiter/policy_limiter.h"
#include "limiter/top_keys.h"

namespace weir::admin {

/// The prefix of their buckets' names; the key follows unchanged (protocol/resp/batch.h).
inline constexpr std::string_view kThrottleBucket = "cl|";

/// A quota that finds what they have charged, whatever numbers came with the commands.
const Quota& AnyThrottle();

/// When the bucket will be full again, whatever its quota is; 0: it is full, or the store does not
/// answer. Charges nothing. On the limiter's thread.
void AskThrottled(limiter::PolicyLimiter& limiter, std::string bucket,
                  std::function<void(std::chrono::nanoseconds full_in)> done);

/// A description of such a bucket: when it will be full, and how often it was refused lately.
std::string AboutThrottled(const limiter::TopKeys& top, std::string_view bucket,
                           std::chrono::nanoseconds full_in);

}  // namespace weir::admin
