#pragma once

#include <optional>

#include "admin/policy_store.h"
#include "weir/result.h"

namespace weir::policy {

/// A policy from the row of any database, without its match. From column `first` on the row has id,
/// key, type, capacity, refill rate, window, buckets, domain, has_match, shadow, unlimited,
/// on_store_error (BehaviourWords), cost, version, created, updated and expires; `Row` has Int and
/// Text.
template <typename Row>
Result<StoredPolicy> ReadPolicy(const Row& row, int first) {
  StoredPolicy policy;
  policy.id = row.Int(first);
  policy.key = row.Text(first + 1);
  const std::optional<PolicyType> type = ParsePolicyType(row.Text(first + 2));
  if (!type || !ReadBehaviour(row.Text(first + 11), policy)) {
    return Error{Code::kInternal, "the stored policy '" + policy.key + "' is damaged"};
  }
  policy.type = *type;
  policy.capacity = row.Int(first + 3);
  policy.refill_rate = row.Int(first + 4);
  policy.window_seconds = row.Int(first + 5);
  policy.buckets = row.Int(first + 6);
  policy.domain = row.Text(first + 7);
  policy.has_match = row.Int(first + 8) != 0;
  policy.shadow = row.Int(first + 9) != 0;
  policy.unlimited = row.Int(first + 10) != 0;
  policy.cost = row.Int(first + 12);
  policy.version = row.Int(first + 13);
  policy.created_at = row.Int(first + 14);
  policy.updated_at = row.Int(first + 15);
  policy.expires_at = row.Int(first + 16);
  return policy;
}

}  // namespace weir::policy
