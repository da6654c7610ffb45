#include "protocol/grpc/quota_messages.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "policy/policy_set.h"

namespace weir::grpc {
namespace {

using limiter::kUnlimitedPerSecond;
using Strategy = envoy::type::v3::RateLimitStrategy;

/// What a quota grants a second in the long run, in requests of `cost`, rounded up.
std::int64_t PerSecond(const Quota& quota, std::int64_t cost) {
  const bool bucket = quota.algorithm() == Algorithm::kTokenBucket;
  const auto permits = static_cast<double>(bucket ? quota.refill() : quota.limit());
  const auto span = static_cast<double>(bucket ? quota.period().count() : quota.window().count());
  const double rate = permits * 1e9 / span / static_cast<double>(std::max<std::int64_t>(cost, 1));
  return static_cast<std::int64_t>(std::clamp(std::ceil(rate), 1.0, 1e9 - 1));
}

}  // namespace

// Each with its length.
std::string TextOf(const QuotaNames& names) {
  std::string text;
  for (const auto& [name, value] : names) {
    text += std::to_string(name.size()) + ':' + name;
    text += std::to_string(value.size()) + ':' + value;
  }
  return text;
}

QuotaNames NamesOf(const envoy::service::rate_limit_quota::v3::BucketId& id) {
  QuotaNames names(id.bucket().begin(), id.bucket().end());
  std::ranges::sort(names);
  return names;
}

QuotaFacts FactsOf(const limiter::Check& check) {
  QuotaFacts facts;
  facts.limited = !check.status.ok();
  if (check.refused_unmatched()) {
    facts.limited = true;
    facts.assignable = false;
  }
  facts.per_second = kUnlimitedPerSecond - 1;
  facts.remaining = check.status.ok() ? kUnlimitedPerSecond : 0;
  for (const limiter::PolicyVerdict& verdict : check.verdicts) {
    if (verdict.shadow || verdict.quota == nullptr) continue;
    const policy::Definition* rule = verdict.rule == nullptr ? nullptr : &verdict.rule->definition;
    const std::int64_t cost = rule == nullptr ? 1 : std::max<std::int64_t>(rule->cost, 1);
    facts.limited = true;
    facts.assignable &= verdict.quota->algorithm() != Algorithm::kConcurrency;
    facts.per_second = std::min(facts.per_second, PerSecond(*verdict.quota, cost));
    facts.remaining = std::min(facts.remaining, verdict.decision.remaining / cost);
    facts.single_attempt |= rule != nullptr && rule->always_counts();
  }
  return facts;
}

std::vector<std::string> KeysOf(const limiter::Check& check) {
  std::vector<std::string> keys;
  for (const limiter::PolicyVerdict& verdict : check.verdicts) {
    if (!verdict.shadow && verdict.quota != nullptr) keys.emplace_back(verdict.key);
  }
  return keys;
}

void SetStrategy(QuotaAction& action, std::int64_t rate) {
  auto& assignment = *action.mutable_quota_assignment_action();
  assignment.mutable_assignment_time_to_live()->set_seconds(kAssignmentTtl.count());
  Strategy& strategy = *assignment.mutable_rate_limit_strategy();
  if (rate == 0) return strategy.set_blanket_rule(Strategy::DENY_ALL);
  auto& bucket = *strategy.mutable_token_bucket();
  bucket.set_max_tokens(static_cast<std::uint32_t>(rate));
  bucket.mutable_tokens_per_fill()->set_value(static_cast<std::uint32_t>(rate));
  bucket.mutable_fill_interval()->set_seconds(1);
}

bool IsSayable(const QuotaNames& names) {
  const auto is_utf8 = [](const std::string& text) {
    return StorableUtf8(text, text.size()) == text;
  };
  return !names.empty() && std::ranges::all_of(names, [&](const auto& entry) {
    return is_utf8(entry.first) && is_utf8(entry.second);
  });
}

void SetId(QuotaAction& action, const QuotaNames& names) {
  auto& id = *action.mutable_bucket_id()->mutable_bucket();
  for (const auto& [name, value] : names) id[name] = value;
}

}  // namespace weir::grpc
