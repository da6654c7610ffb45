// The calls of LeasingStore for refunds, and for applications that permits held here meet in part.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "store/lease/leasing_call.h"
#include "store/lease/leasing_store.h"

namespace weir::store::lease {
namespace {

constexpr Nanos kAlways = std::numeric_limits<Nanos>::max();

}  // namespace

/// Removes the charges that permits held here have met from an application.
std::unique_ptr<LeasingStore::Split> LeasingStore::Part(Application& application) {
  auto split = std::make_unique<Split>();
  split->taken = taken_;
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < application.charges.size(); ++i) {
    const std::size_t first = next;
    while (next < taken_.size() && taken_[next].position == i) ++next;
    if (next != first) continue;
    split->sent.push_back(i);
    split->charges.push_back(application.charges[i]);
  }
  split->decisions.resize(split->charges.size());
  application.charges = split->charges;
  application.decisions = split->decisions;
  return split;
}

/// Reassembles an application: if the store did not admit it, or was too slow for it, nothing was
/// spent here.
void LeasingStore::Join(const Split& split, Application& application, Nanos now) {
  for (std::size_t i = 0; i < split.sent.size(); ++i) {
    application.decisions[split.sent[i]] = split.decisions[i];
  }
  bool lasts = true;
  for (const Taken& taken : split.taken) lasts = Lasts(taken, application, now) && lasts;
  const bool admitted = application.status.ok() && application.applied;
  for (const Taken& taken : split.taken) Settle(taken, application, admitted && lasts, now);
  if (!admitted || lasts) return;
  ReleaseGranted(split, application);
  application.applied = false;
  // Not the store's fault: there is no share of the quota to continue with while it decides.
  application.status = Error{Code::kFailedPrecondition, "the store answered after the lease ended"};
}

/// No client learns the names of permits that the store has granted to a refused check.
void LeasingStore::ReleaseGranted(const Split& split, const Application& application) {
  for (const std::uint32_t place : split.sent) {
    const std::int64_t name = std::exchange(application.decisions[place].lease, 0);
    const store::Charge& charge = application.charges[place];
    const algorithm::LeaseTerms terms{*charge.quota};
    if (name != 0) ReleasePermits(charge.key, terms, {&name, 1});
  }
}

bool LeasingStore::Lasts(const Taken& taken, const Application& application, Nanos now) {
  if (taken.share == 0) return taken.until >= now;
  const auto found = holdings_.find(application.charges[taken.position].key);
  return found != holdings_.end() && found->second.share().Lasts(now, taken.share);
}

/// A request that did not happen after all has not spent its permits. Those that this node no
/// longer holds stay spent: a refund in the store would free what others hold, even of a window,
/// which may have begun with nothing in it but leases. If part of it goes to the store, nothing is
/// returned before the store has answered: a caller that gets an error tries again.
bool LeasingStore::Refund(Application& application, Nanos now) {
  for (std::uint32_t i = 0; i < application.charges.size(); ++i) {
    if (application.terms[i] == nullptr) continue;
    taken_.push_back({.position = i, .until = kAlways, .refund = true});
  }
  if (taken_.size() != application.charges.size()) return false;
  for (const Taken& refund : std::exchange(taken_, {})) RefundHere(refund, application, now);
  return Answer(application, true);
}

void LeasingStore::RefundHere(const Taken& refund, const Application& application, Nanos now) {
  const store::Charge& charge = application.charges[refund.position];
  Decision& decision = application.decisions[refund.position];
  decision = {};
  decision.limit = charge.quota->limit();
  const auto found = holdings_.find(charge.key);
  if (found == holdings_.end()) return;
  const std::int64_t back = found->second.Refund(now, charge.cost);
  CountHeld(back);
  metrics_->refunded.Add(static_cast<std::uint64_t>(back));
  decision = found->second.Estimate(now, true);
}

/// Permits taken for a check are spent, or put back.
void LeasingStore::Settle(const Taken& taken, const Application& application, bool spent,
                          Nanos now) {
  if (taken.refund) {
    if (spent) RefundHere(taken, application, now);
    return;
  }
  if (taken.permit != 0) return SettlePermit(taken, application, spent, now);
  const auto count = static_cast<std::uint64_t>(taken.count);
  if (spent) (taken.share == 0 ? metrics_->spent : metrics_->share_spent).Add(count);
  if (spent && taken.share == 0 && !taken.held) return;
  const auto found = holdings_.find(application.charges[taken.position].key);
  if (found == holdings_.end()) return;
  if (spent && taken.share == 0) {
    found->second.Spend(taken);
  } else if (taken.share == 0) {
    CountHeld(found->second.PutBack(now, taken));
  } else if (spent) {
    found->second.share().Spend(taken.share, taken.count);
  } else {
    found->second.share().PutBack(now, taken.share, taken.count);
  }
}

}  // namespace weir::store::lease
