#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "admin/policy_store.h"
#include "weir/result.h"

namespace weir::http {

/// Reads the `expiresAt` of a policy. Rejects the first instant of 1970 as past, since 0 is stored
/// for a policy without an end.
Result<Nanos> ReadEndTime(std::string_view text);

/// Reads the body of POST and PUT /admin/policies: { "key", "type", "capacity", "refillRate",
/// "windowSeconds" } and Weir's own fields "buckets", "domain", "match", "shadow", "unlimited",
/// "onStoreError", "mode", "store", "overdraw", "charge", "cost". Fields that are not given keep
/// their defaults; unknown ones are errors. kBodyPadding bytes after the body must be
/// readable. Thread-safe.
Result<policy::StoredPolicy> ReadPolicy(std::string_view body);

/// A policy that was read from a body, with warnings for its author.
struct PolicyBody {
  policy::StoredPolicy policy;
  bool names_domain = false;
  /// Such as "windowSeconds is not used by TOKEN_BUCKET; 10 permits come back each second".
  std::vector<std::string> warnings;
};
Result<PolicyBody> ReadPolicyBody(std::string_view body);

}  // namespace weir::http
