#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "admin/policy_store.h"
#include "weir/result.h"

namespace weir::http {

/// Reads the `expiresAt` of a policy. The first instant of 1970 is refused as past: 0 is how a
/// policy without an end is kept.
Result<Nanos> ReadEndTime(std::string_view text);

/// Reads the body of POST and PUT /admin/policies: { "key", "type", "capacity", "refillRate",
/// "windowSeconds" } and our own fields "buckets", "domain", "match", "shadow", "unlimited",
/// "onStoreError", "mode", "store", "overdraw", "charge", "cost". Fields that are not given keep
/// their defaults; unknown ones are errors. So many bytes after the body as kBodyPadding must be
/// readable. Thread-safe.
Result<policy::StoredPolicy> ReadPolicy(std::string_view body);

/// The same, and what whoever wrote it should know.
struct PolicyBody {
  policy::StoredPolicy policy;
  bool names_domain = false;
  /// Numbers that were given and that the algorithm does not use: "refillRate is not used by
  /// SLIDING_WINDOW". Not if they are 0, nor for the default windowSeconds, which clients send with
  /// every token bucket, nor in what the service has answered itself (with `id` or `version`):
  /// answers have the numbers of all algorithms. Also numbers that are missing, and what keeps the
  /// policy from any request.
  std::vector<std::string> warnings;
};
Result<PolicyBody> ReadPolicyBody(std::string_view body);

}  // namespace weir::http
