#pragma once

// What CL.THROTTLE and THROTTLE have charged to a key: a bucket beside those of policies, whose
// quota comes with each command and is not known in between.

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "limiter/policy_limiter.h"
#include "limiter/top_keys.h"

namespace weir::admin {

/// How the names of their buckets begin; the key follows as it is (protocol/resp/batch.h).
inline constexpr std::string_view kThrottleBucket = "cl|";

/// A quota that finds what they have charged, whatever numbers came with the commands.
const Quota& AnyThrottle();

/// When the bucket will be full again, whatever its quota is; 0: it is, or the store does not
/// answer. Charges nothing. On the limiter's thread.
void AskThrottled(limiter::PolicyLimiter& limiter, std::string bucket,
                  std::function<void(std::chrono::nanoseconds full_in)> done);

/// What can be told of such a bucket: when it will be full, and how often it was refused lately.
std::string AboutThrottled(const limiter::TopKeys& top, std::string_view bucket,
                           std::chrono::nanoseconds full_in);

}  // namespace weir::admin
