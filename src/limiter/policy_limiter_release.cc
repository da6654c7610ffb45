// Releases permits in flight that were granted to a check that is refused all the same: by another
// policy, which is charged on its own (`charge: each`), or beside a policy on trial. The client
// does not learn their names, so it could not release them.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "limiter/policy_limiter.h"

namespace weir::limiter {
namespace {

/// The release of one permit, with all its memory: it runs in the background.
struct Release {
  std::string key;
  Quota quota;
  store::Charge charge;
  Decision decision;
  store::Application application;

  Release(std::string_view text, const Quota& of, std::int64_t lease)
      : key(text), quota(of), charge{key, 0, &quota} {
    application.op = store::Op::kRelease;
    application.lease = lease;
    application.charges = {&charge, 1};
    application.decisions = {&decision, 1};
  }
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;
  ~Release() = default;
};

}  // namespace

void PolicyLimiter::ReleaseRefused(Batch& batch, const Check& check,
                                   std::span<const Batch::Item> items) {
  // Without the store, charges that go together were made here, all or none.
  bool all_here = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!check.verdicts[i].degraded || !items[i].together()) continue;
    all_here = all_here && check.verdicts[i].decision.allowed();
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Batch::Item& item = items[i];
    const Decision& decision = check.verdicts[i].decision;
    if (decision.lease == 0 || !decision.allowed() || &batch.charged(item) != &item) continue;
    const store::Application& application = batch.applications()[item.application];
    if (!application.status.ok()) {
      if (all_here || !item.together()) shared_.fallback.Release(batch, item, decision.lease);
      continue;
    }
    if (!application.applied || application.op != store::Op::kCharge) continue;
    const store::Charge& charged = application.charges[item.position];
    auto release = std::make_unique<Release>(charged.key, *charged.quota, decision.lease);
    Release* const raw = release.release();
    store_->Apply({&raw->application, 1}, [raw] { const std::unique_ptr<Release> done(raw); });
  }
}

}  // namespace weir::limiter
