// The calls of LeasingStore in the store of a region, which leases permits from the home store for
// a long term and lends them to nodes for a shorter one. A node may spend what it was lent for its
// own term, so it gets only permits that outlast that. What cannot be met from permits held here
// goes on to the home store.

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "store/lease/drift.h"
#include "store/lease/leasing_store.h"

namespace weir::store::lease {
namespace {

/// How long permits must last here if a node may spend them for `lent` by its own clock: both
/// clocks may be off.
constexpr Nanos Outlasting(Nanos lent) noexcept { return lent + lent * 5 / (2 * kDriftParts) + 1; }

/// The reset_after from which a node derives a lease's end: see algorithm::SpendFor. Permits that
/// are lent last long enough, whichever window they were charged in.
std::chrono::nanoseconds ResetOf(const Quota& quota, Nanos lent) {
  Nanos reset = lent + 1;
  if (quota.algorithm() == Algorithm::kSlidingCounter) {
    reset += ((quota.window().count() - 1) / quota.buckets() + 1) * quota.buckets();
  }
  return std::chrono::nanoseconds(reset);
}

}  // namespace

/// True if it was answered here.
bool LeasingStore::Serve(Application& application, Nanos now) {
  if (application.charges.size() != 1) return false;
  const store::Charge& charge = application.charges.front();
  const algorithm::LeaseTerms terms{.quota = *charge.quota, .term = application.region.term};
  if (application.op == Op::kLease) return Lend(application, terms, now);
  if (application.op == Op::kReturn) return TakeBack(application, now);
  if (application.op != Op::kCharge) return false;
  const algorithm::LeaseTerms* const one = &terms;
  application.terms = {&one, 1};
  const bool answered = Charge(application, now);
  application.terms = {};
  return answered;
}

bool LeasingStore::Lend(Application& application, const algorithm::LeaseTerms& terms, Nanos now) {
  const store::Charge& charge = application.charges.front();
  const Nanos lent = application.region.lent;
  application.granted = 0;
  application.at = 0;
  application.applied = false;
  Holdings::value_type* const entry = Watch(charge, terms, now);
  if (entry == nullptr) {
    application.status = Error{Code::kResourceExhausted,
                               "the region lends nothing: it is draining, or has too many keys"};
    return true;
  }
  Holding& holding = entry->second;
  const Nanos rest = Outlasting(lent);
  const Taken taken = holding.Lend(now, charge.cost, flaws_.region_outlived ? 0 : rest);
  if (holding.ShouldAsk(now, rest)) AskAhead(*entry, now, rest);
  application.status = {};
  application.granted = taken.count;
  application.at = static_cast<Nanos>(taken.lot);
  application.applied = taken.count > 0;
  Decision& decision = application.decisions.front();
  decision = holding.Estimate(now, application.applied);
  if (application.applied) {
    decision.reset_after = std::max(decision.reset_after, ResetOf(terms.quota, lent));
  }
  CountHeld(-taken.count);
  metrics_->lent.Add(static_cast<std::uint64_t>(taken.count));
  return true;
}

/// To the grant it was lent from, if that still lasts.
bool LeasingStore::TakeBack(Application& application, Nanos now) {
  const store::Charge& charge = application.charges.front();
  application.applied = true;
  application.status = {};
  Decision& decision = application.decisions.front();
  decision = {};
  decision.limit = charge.quota->limit();
  const auto found = holdings_.find(charge.key);
  if (found == holdings_.end() || charge.cost <= 0) return true;
  const std::int64_t back = found->second.PutBack(
      now,
      {.lot = static_cast<std::uint64_t>(application.lease), .count = charge.cost, .lent = true});
  CountHeld(back);
  decision = found->second.Estimate(now, true);
  return true;
}

}  // namespace weir::store::lease
