#include "admin/from_file.h"

#include <chrono>
#include <string>
#include <string_view>

#include "algorithm/algorithms.h"
#include "base/int128.h"

namespace weir::policy {
namespace {

using std::chrono::seconds;

constexpr std::chrono::nanoseconds kSecond = seconds(1);

Error Cannot(const Definition& definition, std::string_view what) {
  return Error{Code::kInvalidArgument, definition.source + ": policy '" + definition.name +
                                           "': the admin API does not support " +
                                           std::string(what) +
                                           "; keep the policy in a policy file"};
}

/// A feature of the policy that only files support; empty if it has none.
std::string_view OnlyInFiles(const Definition& definition) {
  if (definition.ordered) return "a chain";
  if (!definition.replaces.empty()) return "replaces";
  if (definition.blocked) return "blocked";
  if (definition.quota_mode) return "quota_mode";
  if (!definition.limit_name.empty()) return "limit_name";
  if (!definition.metadata.empty()) return "metadata";
  if (!definition.key.empty() && definition.has_match) return "both key and match";
  if (!definition.key.empty() && definition.key != definition.name) {
    return "a bare key that differs from the policy's name (use the key as the name)";
  }
  return {};
}

/// Returns why the quota cannot be stored; empty if it was.
std::string_view PutQuota(const Quota& quota, StoredPolicy& policy) {
  const algorithm::Numbers numbers = algorithm::NumbersOf(quota);
  const algorithm::Descriptor& kind = algorithm::Of(quota);
  policy.type = quota.algorithm();
  policy.capacity = numbers.limit;
  if (kind.refills()) {
    // For example, 20 in 2 s and 1 in 100 ms are both 10 per second.
    const Int128 permits = Int128{numbers.refill} * kSecond.count();
    if (permits % numbers.period.count() != 0) {
      return "a refill that is not a whole number per second";
    }
    policy.refill_rate = static_cast<std::int64_t>(permits / numbers.period.count());
    return {};
  }
  if (numbers.window % seconds(1) != seconds(0)) return "a window that is not whole seconds";
  policy.window_seconds = numbers.window / seconds(1);
  if (kind.has_buckets) policy.buckets = numbers.buckets;
  return {};
}

}  // namespace

Result<StoredPolicy> FromDefinition(const Definition& definition) {
  if (const std::string_view what = OnlyInFiles(definition); !what.empty()) {
    return Cannot(definition, what);
  }
  StoredPolicy policy;
  policy.key = definition.name;
  policy.domain = definition.domain;
  policy.has_match = definition.has_match;
  policy.match = definition.match;
  policy.shadow = definition.shadow;
  policy.unlimited = !definition.quota;
  policy.on_store_error = definition.on_store_error;
  policy.mode = definition.mode;
  policy.store = definition.store;
  policy.overdraw = definition.overdraw;
  policy.charge = definition.charge;
  policy.cost = definition.cost;
  if (!definition.quota) return policy;
  if (const std::string_view what = PutQuota(*definition.quota, policy); !what.empty()) {
    return Cannot(definition, what);
  }
  return policy;
}

}  // namespace weir::policy
