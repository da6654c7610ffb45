// The part of PolicyLimiter that reports decisions: counters, samples of keys, spans, and what
// policies have left.

#include "limiter/policy_limiter.h"

namespace weir::limiter {

void PolicyLimiter::Observe(const Batch& batch) {
  const Nanos now = SystemClock::Get().Now();
  for (std::size_t i = 0; i < batch.checks.size(); ++i) {
    if (observer_.traces()) {
      observer_.Trace(batch.checks[i], {batch.asked_at, batch.store_asked_at, now});
    }
    if (observer_.keeps_remaining()) KeepRemaining(batch, i, now);
  }
}

/// Records what the charge left in the bucket that was charged last under each policy.
void PolicyLimiter::KeepRemaining(const Batch& batch, std::size_t index, Nanos now) {
  const Check& check = batch.checks[index];
  if (check.op != store::Op::kCharge || !check.status.ok()) return;
  const std::span<const Batch::Item> items = batch.ItemsOf(index);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool limits = items[i].policy != nullptr && items[i].quota != nullptr;
    if (!limits || check.verdicts[i].degraded) continue;
    counters_->SetRemaining(items[i].policy->id, check.verdicts[i].decision.remaining, now);
  }
}

void PolicyLimiter::Count(const Batch& batch, std::size_t index) {
  const Check& check = batch.checks[index];
  if (!check.status.ok()) {
    counters_->Raise(CounterTable::kChecksFailed);
    return;
  }
  if (check.op != store::Op::kCharge) return;
  const bool allowed = check.decision.allowed();
  counters_->Raise(allowed ? CounterTable::kChecksAllowed : CounterTable::kChecksLimited);
  if (check.degraded) counters_->Raise(CounterTable::kChecksDegraded);
  const std::span<const Batch::Item> items = batch.ItemsOf(index);
  if (items.empty() || check.refused_unmatched()) counters_->Raise(CounterTable::kChecksUnmatched);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].policy == nullptr || &batch.charged(items[i]) != &items[i]) continue;
    const std::uint32_t id = items[i].policy->id;
    const PolicyVerdict& verdict = check.verdicts[i];
    if (verdict.degraded) counters_->Raise(id, CounterTable::kErrors);
    if (!verdict.decision.allowed()) {
      counters_->Raise(id, verdict.shadow ? CounterTable::kShadowLimited : CounterTable::kLimited);
    } else if (allowed || verdict.shadow) {
      // A policy that would have admitted what another one refused has granted nothing.
      counters_->Raise(id, CounterTable::kAllowed);
    }
  }
  Sample(batch, check, items);
}

/// Samples the bucket that decided the check, or one of a policy on trial if there is no other.
/// Buckets where policies on trial would refuse are sampled in addition.
void PolicyLimiter::Sample(const Batch& batch, const Check& check,
                           std::span<const Batch::Item> items) {
  std::size_t noted = items.size();
  bool decided = false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const PolicyVerdict& verdict = check.verdicts[i];
    if (verdict.key.empty()) continue;
    if (verdict.shadow) {
      if (!verdict.decision.allowed() && &batch.charged(items[i]) == &items[i]) {
        sampler_->Note(verdict.key, items[i].policy->id, Outcome::kShadow);
      }
      if (noted == items.size()) noted = i;
    } else if (verdict.policy == check.policy &&
               verdict.decision.verdict == check.decision.verdict) {
      if (!decided) noted = i;
      decided = true;
    }
  }
  if (noted == items.size()) return;
  const policy::Policy* policy = items[noted].policy;
  sampler_->Note(check.verdicts[noted].key, policy == nullptr ? kNoPolicy : policy->id,
                 check.decision.allowed() ? Outcome::kAllowed : Outcome::kLimited);
}

}  // namespace weir::limiter
