#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "limiter/policy_limiter.h"
#include "policy/request.h"

namespace weir::limiter {

/// The result of one policy for a request.
struct ExplainedPolicy {
  std::string policy;
  std::string source;  ///< where the policy is defined
  std::string quota;   ///< "token_bucket(capacity=100, refill=10 per 1s)" or "unlimited"
  std::string key;     ///< the bucket in the store
  std::size_t descriptor = 0;
  bool shadow = false;
  bool degraded = false;
  // How it charges.
  policy::Mode mode = policy::Mode::kExact;
  bool overdraw = false;
  policy::ChargeMode charge = policy::ChargeMode::kAllOrNone;
  std::string replaced_by;  ///< not empty: a more specific policy replaces it
  Decision decision;        ///< what a charge would get now
  std::string why;          ///< a sentence
};

/// Which policies apply to a request and what they would decide.
struct Explanation {
  Decision decision;
  std::string policy;  ///< the policy that made it
  std::string why;     ///< a sentence about the overall result
  std::vector<ExplainedPolicy> policies;
  Status status;
};

/// Explains what a check of this request would get, without charging. `request` must live until
/// `done` is called: before this returns if the store is immediate. On the limiter's thread.
void Explain(PolicyLimiter& limiter, const policy::Request& request,
             std::function<void(Explanation)> done);

/// The same for one bucket of one policy, which must have a quota or be unlimited. The policy is
/// kept alive until `done`; `bucket` must live until then.
void ExplainBucket(PolicyLimiter& limiter, std::shared_ptr<const policy::Policy> policy,
                   std::string_view bucket, std::int64_t cost,
                   std::function<void(Explanation)> done);

}  // namespace weir::limiter
