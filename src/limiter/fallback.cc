#include "limiter/fallback.h"

#include <vector>

namespace weir::limiter {
namespace {

// When to retry while nothing is known about the store.
constexpr std::chrono::seconds kAskAgain{1};

Decision Refused(const Quota& quota) {
  Decision decision;
  decision.verdict = Verdict::kLimited;
  decision.limit = quota.limit();
  decision.retry_after = kAskAgain;
  decision.reset_after = kAskAgain;
  return decision;
}

Decision Granted(const Quota& quota) {
  Decision decision;
  decision.limit = quota.limit();
  decision.remaining = quota.limit();
  return decision;
}

// The share may be smaller than a cost that the whole quota allows, so this is not kNever.
void Soften(Decision& decision) {
  if (decision.verdict != Verdict::kNever) return;
  decision.verdict = Verdict::kLimited;
  decision.retry_after = kAskAgain;
}

}  // namespace

policy::OnStoreError RuleOf(const Batch::Item& item, store::Fault fault) noexcept {
  // Refusing everything needs no store.
  const bool blocked = item.policy != nullptr && item.policy->definition.blocked;
  if (blocked && item.cost > 0) return policy::OnStoreError::kDeny;
  const policy::OnStoreError rule = item.policy == nullptr ? policy::OnStoreError::kLocal
                                                           : item.policy->definition.on_store_error;
  const bool no_share = fault == store::Fault::kQuestion && rule == policy::OnStoreError::kLocal;
  return no_share ? policy::OnStoreError::kDeny : rule;
}

Fallback::Fallback(const Options& options)
    : share_(options.share),
      engine_(*Quota::TokenBucket(1, 1), EngineOptions{.max_keys = options.max_keys,
                                                       .keys = KeyStorage::kFingerprint,
                                                       .clock = options.clock,
                                                       .on_evict = {}}) {}

Quota Fallback::LocalQuota(const Batch::Item& item) const {
  if (item.policy != nullptr && item.policy->local_quota) return *item.policy->local_quota;
  return policy::ShareOf(*item.quota, share_);
}

void Fallback::DecideEnforced(const Batch& batch, std::span<const Batch::Item* const> items,
                              store::Fault fault, bool charge, std::span<Decision> decisions) {
  // The store is down: a few allocations do not matter here.
  std::vector<Quota> quotas;
  std::vector<std::size_t> local;
  quotas.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Batch::Item& item = *items[i];
    switch (RuleOf(item, fault)) {
      case policy::OnStoreError::kAllow:
        decisions[i] = Granted(*item.quota);
        break;
      case policy::OnStoreError::kDeny:
        decisions[i] = Refused(*item.quota);
        charge = false;
        break;
      case policy::OnStoreError::kLocal:
        quotas.push_back(LocalQuota(item));
        local.push_back(i);
        break;
    }
  }
  std::vector<Ask> asks;
  for (std::size_t k = 0; k < local.size(); ++k) {
    const Batch::Item& item = *items[local[k]];
    asks.push_back({batch.KeyOf(item), item.cost, &quotas[k]});
  }
  std::vector<Decision> answers(asks.size());
  if (charge && !asks.empty()) {
    engine_.TryAcquireAll(asks, answers);
  } else {
    for (std::size_t k = 0; k < asks.size(); ++k) {
      answers[k] = engine_.Peek(asks[k].key, *asks[k].quota, asks[k].cost);
    }
  }
  for (std::size_t k = 0; k < local.size(); ++k) {
    Soften(answers[k]);
    decisions[local[k]] = answers[k];
  }
}

Decision Fallback::DecideAlone(const Batch& batch, const Batch::Item& item, store::Fault fault,
                               store::Op op) {
  if (op == store::Op::kOverdraw && RuleOf(item, fault) == policy::OnStoreError::kLocal) {
    return engine_.Overdraw(batch.KeyOf(item), LocalQuota(item), item.cost);
  }
  const Batch::Item* one = &item;
  Decision decision;
  DecideEnforced(batch, std::span(&one, 1), fault, op == store::Op::kCharge,
                 std::span(&decision, 1));
  return decision;
}

bool Fallback::Release(const Batch& batch, const Batch::Item& item, std::int64_t lease) {
  return engine_.Release(batch.KeyOf(item), LocalQuota(item), lease);
}

}  // namespace weir::limiter
