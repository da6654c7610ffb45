#include "store/route/routing_call.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "algorithm/lease.h"
#include "store/in_part.h"

namespace weir::store::route {
namespace {

bool HoldsPermits(const Charge& charge) noexcept {
  return charge.quota->algorithm() == Algorithm::kConcurrency;
}

bool IsReservation(const Application& application) noexcept {
  return application.charges.size() > 1 && IsRecord(application.charges.front().key);
}

/// Operations on something that one store named (a lease, a stamp), which another cannot know.
bool IsOfOneStore(Op op) noexcept {
  return op == Op::kRelease || op == Op::kReturn || op == Op::kLease || op == Op::kSettle;
}

Decision Stricter(Decision a, const Decision& b) noexcept {
  if (a.allowed()) a.verdict = b.verdict;
  a.remaining = std::min(a.remaining, b.remaining);
  a.retry_after = std::max(a.retry_after, b.retry_after);
  a.reset_after = std::max(a.reset_after, b.reset_after);
  return a;
}

void TakeAnswer(const Application& from, Application& to) {
  to.applied = from.applied;
  to.granted = from.granted;
  to.at = from.at;
  to.estimated = from.estimated;
  to.status = from.status;
}

Error Gone() { return {Code::kUnavailable, "the stores are closed"}; }

}  // namespace

void RoutingCall::Run(const Routes& routes, std::span<Application> batch, Done done) {
  done_ = std::move(done);
  outbox_.resize(shared_->members.size());
  origins_.resize(shared_->members.size());
  for (Application& application : batch) Plan(routes, application);
  SendRound();
}

void RoutingCall::Plan(const Routes& routes, Application& application) {
  Work work{.application = &application};
  const bool grouped = application.op == Op::kCharge && application.charges.size() > 1 &&
                       !IsReservation(application);
  const auto leg_to = [&work](std::uint8_t member, bool mirror, std::string group) -> Leg& {
    for (Leg& leg : work.legs) {
      if (leg.member == member && leg.mirror == mirror && leg.group == group) return leg;
    }
    return work.legs.emplace_back(
        Leg{.member = member, .mirror = mirror, .group = std::move(group)});
  };
  const auto add = [&](std::uint8_t member, bool mirror, std::size_t place) {
    Leg& leg = leg_to(member, mirror,
                      grouped ? GroupOf(member, application.charges[place]) : std::string());
    leg.places.push_back(static_cast<std::uint32_t>(place));
    leg.charges.push_back(application.charges[place]);
  };
  bool moving = false;
  std::vector<Way> ways;
  ways.reserve(application.charges.size());
  for (std::size_t i = 0; i < application.charges.size(); ++i) {
    ways.push_back(routes.Of(application.charges[i].key));
    add(ways[i].member, false, i);
    moving |= ways[i].moving();
  }
  const bool one_server = std::ranges::all_of(
      work.legs, [&](const Leg& leg) { return leg.member == work.legs.front().member; });
  if (!one_server && (application.op == Op::kSettle || IsReservation(application))) {
    application.applied = false;
    application.status = Error{Code::kInvalidArgument,
                               "a reservation needs all its policies on one server; give them the "
                               "same store, without shards"};
    return;
  }
  if (one_server && !moving) {  // groups do not matter: that store handles them
    return Queue(work.legs.empty() ? 0 : work.legs.front().member, application);
  }
  // The first leg's member is the one that all nodes call first, so that two requests that span the
  // same servers do not refuse each other by holding one each.
  std::ranges::sort(work.legs, {}, [](const Leg& leg) { return std::tie(leg.member, leg.group); });
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const Charge& charge = application.charges[i];
    // A settlement above its estimate counts in both as well.
    const bool both =
        application.op == Op::kSettle ? charge.cost > 0 : !IsOfOneStore(application.op);
    if (both && ways[i].moving() && !HoldsPermits(charge)) add(ways[i].also, true, i);
  }
  if (work.legs.size() == 1 && !(moving && application.op == Op::kLease)) {
    return Queue(work.legs.front().member, application);
  }
  shared_->counts.split.fetch_add(1, std::memory_order_relaxed);
  Begin(works_.emplace_back(std::move(work)));
}

std::string RoutingCall::GroupOf(std::uint8_t member, const Charge& charge) const {
  return member < shared_->members.size() ? shared_->members[member]->GroupOf(charge.key)
                                          : std::string();
}

void RoutingCall::Begin(Work& work) {
  const Op op = work.application->op;
  if (op == Op::kCharge) return Ask(work.legs.front(), op);
  if (op == Op::kLease) {
    // A lease could be spent under only one of the two stores: until then every check asks both.
    work.legs.front().charges.front().cost = 1;
    return Ask(work.legs.front(), Op::kPeek);
  }
  if (op == Op::kSettle) return AskToSettle(work);
  for (Leg& leg : work.legs) Ask(leg, op);
}

void RoutingCall::Advance(Work& work) {
  if (work.step == Work::Step::kDone) return;
  if (work.step == Work::Step::kAsking && work.application->op == Op::kCharge) {
    return AdvanceCharge(work);
  }
  if (work.application->op == Op::kSettle) return TakeSettled(work);
  Combine(work);
}

void RoutingCall::AdvanceCharge(Work& work) {
  const Leg& leg = work.legs[work.next];
  if (!leg.said()) {
    if (!leg.mirror) return Fail(work, leg.answer.status);
    // The old store has admitted and counted it. What the new one therefore lacks is levelled with
    // the key's next charge.
    shared_->counts.missed.fetch_add(1, std::memory_order_relaxed);
  } else if (!leg.answer.applied) {
    return Refuse(work);
  }
  if (++work.next < work.legs.size()) return Ask(work.legs[work.next], Op::kCharge);
  LookToLevel(work);
  Combine(work);
}

void RoutingCall::Refuse(Work& work) {
  work.refused = true;
  UndoBefore(work, work.next);
  bool looks = false;
  for (Leg& leg : work.legs) {
    if (leg.asked || leg.mirror) continue;
    Ask(leg, Op::kPeek);
    looks = true;
  }
  work.step = Work::Step::kLooking;
  if (!looks) Combine(work);
}

void RoutingCall::Fail(Work& work, Status why) {
  UndoBefore(work, work.next);
  work.application->applied = false;
  work.application->status = std::move(why);
  work.step = Work::Step::kDone;
}

/// Returned as leases are (algorithm/lease.h), as far as a charge still counts: time has passed
/// since, and a refund would free what has flowed in, or what others were charged since. Charges
/// that cannot be named stay.
void RoutingCall::UndoBefore(const Work& work, std::size_t leg) {
  for (std::size_t i = 0; i < leg; ++i) {
    const Leg& charged = work.legs[i];
    if (!charged.said() || !charged.answer.applied) continue;
    shared_->counts.undone.fetch_add(1, std::memory_order_relaxed);
    for (std::size_t k = 0; k < charged.charges.size(); ++k) {
      const Charge& charge = charged.charges[k];
      const Decision& decision = charged.decisions[k];
      if (charge.cost <= 0) continue;
      if (HoldsPermits(charge)) {
        AskExtra(charged.member, Op::kRelease, {.charges = {charge}}, decision.lease);
      } else if (charged.answer.at != 0) {
        AskExtra(charged.member, Op::kReturn, {.charges = {charge}},
                 algorithm::ChargedAt(*charge.quota, charged.answer.at, decision));
      } else {
        shared_->counts.not_undone.fetch_add(1, std::memory_order_relaxed);
      }
    }
  }
}

void RoutingCall::Combine(Work& work) {
  Application& application = *work.application;
  application.status = {};
  application.applied = !work.refused && application.op != Op::kLease;
  application.granted = 0;
  const bool whole = FailsInPart(application.op) || std::ranges::none_of(work.legs, &Leg::said);
  for (const Leg& leg : work.legs) {
    if (leg.asked && !leg.said() && work.step == Work::Step::kAsking) {
      if (leg.mirror && application.op != Op::kCharge && application.op != Op::kPeek) {
        shared_->counts.missed.fetch_add(1, std::memory_order_relaxed);
      }
      if (!leg.mirror && whole) application.status = leg.answer.status;
    }
    for (std::size_t k = 0; k < leg.places.size(); ++k) {
      Decision& decision = application.decisions[leg.places[k]];
      if (!leg.mirror) decision = {.limit = leg.charges[k].quota->limit()};
      if (!leg.said()) continue;
      decision = leg.mirror ? Stricter(decision, leg.decisions[k]) : leg.decisions[k];
    }
  }
  work.step = Work::Step::kDone;
}

void RoutingCall::Ask(Leg& leg, Op op) {
  leg.asked = true;
  leg.decisions.resize(leg.charges.size());
  leg.answer.op = op;
  leg.answer.returnable = op == Op::kCharge;
  leg.answer.at = 0;
  leg.answer.charges = leg.charges;
  leg.answer.decisions = leg.decisions;
  Queue(leg.member, leg.answer);
}

void RoutingCall::AskExtra(std::uint8_t member, Op op, Extra extra, std::int64_t lease) {
  Extra& kept = extras_.emplace_back(std::move(extra));
  if (!kept.marker.empty()) kept.charges.front().key = kept.marker;
  kept.decisions.resize(kept.charges.size());
  kept.answer.op = op;
  kept.answer.charges = kept.charges;
  kept.answer.lease = lease;
  kept.answer.decisions = kept.decisions;
  Queue(member, kept.answer);
}

void RoutingCall::TakeExtras() {
  for (const std::size_t answered = extras_.size(); extras_taken_ < answered; ++extras_taken_) {
    const Extra& extra = extras_[extras_taken_];
    const bool ok = extra.answer.status.ok();
    switch (extra.kind) {
      case Extra::Kind::kUndo:
        if (!ok) shared_->counts.not_undone.fetch_add(1, std::memory_order_relaxed);
        break;
      case Extra::Kind::kMore:
        if (!ok) shared_->counts.missed.fetch_add(1, std::memory_order_relaxed);
        break;
      case Extra::Kind::kLook:
        Level(extra);
        break;
      case Extra::Kind::kLevel:
        if (ok && extra.answer.applied) {
          shared_->counts.levelled.fetch_add(1, std::memory_order_relaxed);
        }
        break;
    }
  }
}

void RoutingCall::Queue(std::uint8_t member, Application& application) {
  outbox_[member].push_back(application);
  outbox_[member].back().terms = {};
  outbox_[member].back().region = {};
  origins_[member].push_back(&application);
}

void RoutingCall::SendRound() {
  waiting_ = 1;
  const auto answered = [self = shared_from_this()] {
    if (--self->waiting_ == 0) self->OnAnswers();
  };
  for (std::size_t i = 0; i < outbox_.size(); ++i) {
    if (outbox_[i].empty()) continue;
    if (i >= shared_->members.size()) {  // the store has been destroyed
      for (Application& application : outbox_[i]) application.status = Gone();
      continue;
    }
    ++waiting_;
    shared_->members[i]->Apply(outbox_[i], answered);
  }
  answered();
}

void RoutingCall::OnAnswers() {
  for (std::size_t i = 0; i < outbox_.size(); ++i) {
    for (std::size_t k = 0; k < outbox_[i].size(); ++k) TakeAnswer(outbox_[i][k], *origins_[i][k]);
    outbox_[i].clear();
    origins_[i].clear();
  }
  TakeExtras();
  for (Work& work : works_) Advance(work);
  const auto empty = [](const std::vector<Application>& asked) { return asked.empty(); };
  if (!std::ranges::all_of(outbox_, empty)) return SendRound();
  done_();
}

}  // namespace weir::store::route
