#include "store/memory/memory_store.h"

#include <algorithm>
#include <chrono>

namespace weir::store::memory {
namespace {

bool IsSingleCharge(const Application& application) {
  return application.op == Op::kCharge && application.charges.size() == 1 &&
         !application.returnable;
}

}  // namespace

void MemoryStore::Apply(std::span<Application> batch, Done done) {
  while (!batch.empty()) {
    const auto end = std::find_if_not(batch.begin(), batch.end(), IsSingleCharge);
    const auto singles = static_cast<std::size_t>(end - batch.begin());
    if (singles > 1) {
      ChargeSingles(batch.first(singles));
      batch = batch.subspan(singles);
    } else {
      ApplyOne(batch.front());
      batch = batch.subspan(1);
    }
  }
  done();
}

void MemoryStore::ChargeSingles(std::span<Application> batch) {
  asks_.clear();
  for (const Application& application : batch) asks_.push_back(application.charges.front());
  decisions_.resize(std::max(decisions_.size(), asks_.size()));
  engine_.TryAcquireBatch(asks_, decisions_);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch[i].decisions.front() = decisions_[i];
    batch[i].applied = decisions_[i].allowed();
    if (!batch[i].status.ok()) batch[i].status = {};
  }
}

void MemoryStore::ApplyOne(Application& application) {
  const std::span<const Charge> charges = application.charges;
  const std::span<Decision> decisions = application.decisions;
  application.status = {};
  application.applied = true;
  switch (application.op) {
    case Op::kCharge:
      if (IsSingleCharge(application)) {
        decisions[0] = engine_.TryAcquire(charges[0].key, *charges[0].quota, charges[0].cost);
        application.applied = decisions[0].allowed();
      } else if (!charges.empty()) {
        Nanos* const at = application.returnable ? &application.at : nullptr;
        const std::chrono::nanoseconds lasts(ReservedFor(charges));
        application.applied = lasts.count() > 0
                                  ? engine_.TryReserveAll(charges, lasts, decisions, at)
                                  : engine_.TryAcquireAll(charges, decisions, at);
      }
      return;
    case Op::kPeek:
      for (std::size_t i = 0; i < charges.size(); ++i) {
        decisions[i] = engine_.Peek(charges[i].key, *charges[i].quota, charges[i].cost);
      }
      return;
    case Op::kRefund:
      for (std::size_t i = 0; i < charges.size(); ++i) {
        decisions[i] = engine_.Refund(charges[i].key, *charges[i].quota, charges[i].cost);
      }
      return;
    case Op::kOverdraw:
      for (std::size_t i = 0; i < charges.size(); ++i) {
        decisions[i] = engine_.Overdraw(charges[i].key, *charges[i].quota, charges[i].cost);
      }
      return;
    case Op::kRelease:
      application.applied = false;
      for (std::size_t i = 0; i < charges.size(); ++i) {
        const Charge& charge = charges[i];
        application.applied |= engine_.Release(charge.key, *charge.quota, application.lease);
        decisions[i] = engine_.Peek(charge.key, *charge.quota, 0);
      }
      return;
    case Op::kReset:
      for (std::size_t i = 0; i < charges.size(); ++i) {
        engine_.Reset(charges[i].key);
        decisions[i] = engine_.Peek(charges[i].key, *charges[i].quota, 0);
      }
      return;
    case Op::kLease: {
      const LeaseGrant grant = engine_.Lease(charges[0].key, *charges[0].quota, charges[0].cost);
      decisions[0] = grant.decision;
      application.granted = grant.granted;
      application.at = grant.at;
      application.applied = grant.granted > 0;
      return;
    }
    case Op::kSettle:
      Settle(application);
      return;
    case Op::kReturn:
      decisions[0] =
          engine_.Return(charges[0].key, *charges[0].quota, application.lease, charges[0].cost);
      return;
  }
}

/// The record comes first and only once, so that nothing is settled twice; then each key.
void MemoryStore::Settle(Application& application) {
  const std::span<const Charge> charges = application.charges;
  const Charge& record = charges.front();
  application.applied = engine_.Release(record.key, *record.quota, application.lease);
  // A record of one permit, as all are, is never charged again. It would take up room until its
  // lease ends.
  const bool done = application.applied && IsRecord(record.key) && record.quota->limit() == 1;
  if (done) engine_.Reset(record.key);
  application.decisions[0] = engine_.Peek(record.key, *record.quota, 0);
  for (std::size_t i = 1; i < charges.size(); ++i) {
    const Charge& charge = charges[i];
    application.decisions[i] =
        application.applied
            ? engine_.Adjust(charge.key, *charge.quota, application.stamps[i], charge.cost)
            : engine_.Overdraw(charge.key, *charge.quota, 0);
  }
}

}  // namespace weir::store::memory
