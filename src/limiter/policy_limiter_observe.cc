// The part of PolicyLimiter that tells what was decided: spans, and what policies have left.

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

/// What is left after a charge, of the bucket that was charged last under each policy.
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

}  // namespace weir::limiter
