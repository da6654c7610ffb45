#pragma once

#include <string_view>

#include "admin/policy_store.h"
#include "weir/result.h"

namespace weir::http {

/// Reads the body of POST and PUT /admin/policies: { "key", "type", "capacity", "refillRate",
/// "windowSeconds" } and our own fields "buckets", "domain", "match", "shadow", "unlimited",
/// "onStoreError", "mode", "store", "overdraw", "charge", "cost". Fields that are not given keep
/// their defaults; unknown ones are errors. So many bytes after the body as kBodyPadding must be
/// readable. Thread-safe.
Result<policy::StoredPolicy> ReadPolicy(std::string_view body);

}  // namespace weir::http
