// What PolicySet needs besides matching: stable numbers, the default policy, shares of quotas.

#include <algorithm>
#include <chrono>
#include <cmath>

#include "algorithm/algorithms.h"
#include "policy/keys.h"
#include "policy/policy_set.h"

namespace weir::policy {

std::uint32_t PolicyIds::IdOf(std::string_view domain, std::string_view policy) {
  std::string identity = std::to_string(domain.size()) + ':';
  identity.append(domain).append(policy);
  const std::lock_guard lock(mutex_);
  const auto found = ids_.find(identity);
  if (found != ids_.end()) return found->second;
  if (names_.size() + 1 >= kMax) {
    if (names_.size() + 1 == kMax) names_.push_back({"", "(others)"});
    return kMax - 1;
  }
  const auto id = static_cast<std::uint32_t>(names_.size());
  names_.push_back({std::string(domain), std::string(policy)});
  ids_.emplace(std::move(identity), id);
  return id;
}

std::uint32_t PolicyIds::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint32_t>(names_.size());
}

std::vector<PolicyIds::Name> PolicyIds::First(std::size_t most) const {
  const std::lock_guard lock(mutex_);
  const std::size_t count = std::min(most, names_.size());
  return {names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::optional<PolicyIds::Name> PolicyIds::NameOf(std::uint32_t id) const {
  const std::lock_guard lock(mutex_);
  return id < names_.size() ? std::optional(names_[id]) : std::nullopt;
}

void AppendBucket(std::string& out, const Policy& policy, std::string_view key) {
  const bool own = policy.definition.shadow && !policy.definition.key.empty();
  if (!own) return AppendBareKey(out, key);
  out += policy.key_parts.front();
}

Definition DefaultPolicy() {
  Definition policy;
  policy.name = "default";
  policy.quota = *Quota::TokenBucket(100, 10);
  policy.source = "built in";
  return policy;
}

Quota ShareOf(const Quota& quota, double share) {
  const double scaled = std::floor(static_cast<double>(quota.limit()) * share);
  const std::int64_t limit =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(scaled), 1, quota.limit());
  const auto longer = [&](std::chrono::nanoseconds span) {
    const double nanos = std::ceil(static_cast<double>(span.count()) / share);
    return std::chrono::nanoseconds(
        static_cast<std::int64_t>(std::min(nanos, static_cast<double>(kMaxWindow.count()))));
  };
  algorithm::Numbers numbers = algorithm::NumbersOf(quota);
  numbers.limit = limit;
  if (algorithm::Of(quota).refills()) numbers.period = longer(quota.period());
  const Result<Quota> part = algorithm::Of(quota).make(numbers);
  // A quota at the edge of what is representable may have no exact share: one permit per window.
  if (part.ok()) return *part;
  return *Quota::FixedWindow(
      1, std::clamp<std::chrono::nanoseconds>(quota.window(), std::chrono::seconds(1), kMaxWindow));
}

}  // namespace weir::policy
