#include "store/redis/crossing.h"

#include <algorithm>
#include <utility>

#include "algorithm/lease.h"
#include "store/in_part.h"
#include "store/redis/names.h"

namespace weir::store::redis {
namespace {

/// Undoes a charge that got `decision` at `at`, as far as it still counts.
Application Undo(const Charge& charge, Decision& decision, Nanos at) {
  Application undo;
  undo.charges = {&charge, 1};
  if (charge.quota->algorithm() == Algorithm::kConcurrency) {
    undo.op = Op::kRelease;
    undo.lease = decision.lease;
  } else {
    undo.op = Op::kReturn;
    undo.lease = algorithm::ChargedAt(*charge.quota, at, decision);
  }
  undo.decisions = {&decision, 1};
  return undo;
}

}  // namespace

bool Crossing::Can(const Application& whole) noexcept {
  return std::none_of(whole.charges.begin(), whole.charges.end(),
                      [](const Charge& charge) { return IsRecord(charge.key); });
}

void Crossing::Run(Application& whole, const std::vector<std::vector<std::uint32_t>>& groups,
                   Apply apply, Done done) {
  const std::shared_ptr<Crossing> run(new Crossing(whole, std::move(apply), std::move(done)));
  for (const auto& positions : groups) {
    Part& part = run->parts_.emplace_back();
    part.positions = positions;
    for (const std::uint32_t i : positions) part.charges.push_back(whole.charges[i]);
    part.decisions.resize(positions.size());
  }
  if (run->op_ == Op::kCharge) return run->ChargeNext();
  whole.applied = true;
  run->AskAll();
}

Crossing::Crossing(Application& whole, Apply apply, Done done)
    : whole_(whole), op_(whole.op), apply_(std::move(apply)), done_(std::move(done)) {}

void Crossing::ChargeNext() {
  Part& part = parts_[next_];
  asked_.assign(1, {});
  asked_[0].returnable = true;
  asked_[0].charges = part.charges;
  asked_[0].decisions = part.decisions;
  apply_(asked_, [self = shared_from_this()] { self->OnCharged(); });
}

void Crossing::OnCharged() {
  const Application& answer = asked_[0];
  whole_.status = answer.status;
  whole_.applied = answer.status.ok() && answer.applied;
  if (!whole_.applied) return GiveBack();
  parts_[next_].at = answer.at;
  if (++next_ < parts_.size()) return ChargeNext();
  // Used to undo the whole. If parts were charged at different times, the earliest: a later one
  // could return what was charged after it.
  whole_.at = std::ranges::min(parts_, {}, &Part::at).at;
  Finish();
}

/// Returns the parts before the one that refused, and peeks at those after it, so that every charge
/// has a decision.
void Crossing::GiveBack() {
  asked_.clear();
  for (std::size_t i = 0; i < next_; ++i) {
    Part& part = parts_[i];
    for (std::size_t k = 0; k < part.charges.size(); ++k) {
      if (part.charges[k].cost <= 0) continue;
      asked_.push_back(Undo(part.charges[k], part.decisions[k], part.at));
    }
  }
  if (whole_.status.ok()) AddLooks(next_ + 1, Op::kPeek);
  apply_(asked_, [self = shared_from_this()] { self->Finish(); });
}

void Crossing::AddLooks(std::size_t first, Op op) {
  for (std::size_t i = first; i < parts_.size(); ++i) {
    Application& one = asked_.emplace_back();
    one.op = op;
    one.charges = parts_[i].charges;
    one.decisions = parts_[i].decisions;
  }
}

/// For operations without dependencies between slots.
void Crossing::AskAll() {
  AddLooks(0, op_);
  apply_(asked_, [self = shared_from_this()] {
    const bool any =
        std::ranges::any_of(self->asked_, [](const auto& one) { return one.status.ok(); });
    for (const Application& one : self->asked_) {
      self->whole_.applied &= one.applied;
      if (!one.status.ok() && (FailsInPart(self->op_) || !any)) self->whole_.status = one.status;
    }
    self->Finish();
  });
}

void Crossing::Finish() {
  for (const Part& part : parts_) {
    for (std::size_t i = 0; i < part.positions.size(); ++i) {
      whole_.decisions[part.positions[i]] = part.decisions[i];
    }
  }
  done_();
}

}  // namespace weir::store::redis
