// The calls of RoutingCall that bring a key's new store up to date with its old one.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/route/routing_call.h"

namespace weir::store::route {
namespace {

constexpr std::string_view kLevelMarker = "|%level";

}  // namespace

/// A key that has more left in its new store than in its old one is levelled. How much the new one
/// lacks is not known yet: others may have been charged there since this charge was made in the old
/// one. So the old one is asked again.
void RoutingCall::LookToLevel(const Work& work) {
  std::vector<std::pair<std::uint8_t, std::int64_t>> old(work.application->charges.size());
  for (const Leg& leg : work.legs) {
    for (std::size_t k = 0; !leg.mirror && k < leg.places.size(); ++k) {
      old[leg.places[k]] = {leg.member, leg.decisions[k].remaining};
    }
  }
  for (const Leg& leg : work.legs) {
    for (std::size_t k = 0; leg.mirror && leg.said() && k < leg.places.size(); ++k) {
      const auto [member, left] = old[leg.places[k]];
      if (leg.decisions[k].remaining <= left) continue;
      AskExtra(member, Op::kPeek,
               {.kind = Extra::Kind::kLook,
                .new_store = leg.member,
                .left = leg.decisions[k].remaining,
                .charges = {{leg.charges[k].key, 0, leg.charges[k].quota}}});
    }
  }
}

/// What the old store knew about a key and the new one did not, a moment earlier, is charged to the
/// new one: every charge goes to the old one first, so this is never too little, and too much by
/// what is under way. Only once per pause: the marker is charged with it, all or none, so of the
/// calls that see the difference at the same time only one levels it.
void RoutingCall::Level(const Extra& look) {
  if (!look.answer.status.ok()) return;  // then with the next charge
  const std::int64_t more = look.left - look.decisions.front().remaining;
  if (more <= 0) return;
  const Charge& charge = look.charges.front();
  AskExtra(look.new_store, Op::kCharge,
           {.kind = Extra::Kind::kLevel,
            .marker = std::string(charge.key) + std::string(kLevelMarker),
            .charges = {{{}, 1, &shared_->once_per_pause}, {charge.key, more, charge.quota}}});
}

/// The record of a reservation is only in the old store, so that store settles it.
void RoutingCall::AskToSettle(Work& work) {
  Leg& leg = work.legs.front();
  leg.answer.lease = work.application->lease;
  leg.answer.stamps = work.application->stamps;
  Ask(leg, Op::kSettle);
}

/// What a lower cost frees stays charged in the new store; what a higher one adds is charged there
/// as well, since the key may not be charged again before it has moved.
void RoutingCall::TakeSettled(Work& work) {
  const Leg& settled = work.legs.front();
  Application& application = *work.application;
  application.applied = settled.answer.applied;
  application.status = settled.answer.status;
  for (std::size_t k = 0; k < settled.places.size(); ++k) {
    application.decisions[settled.places[k]] = settled.decisions[k];
  }
  for (const Leg& leg : work.legs) {
    if (!leg.mirror || !settled.said() || !settled.answer.applied) continue;
    AskExtra(leg.member, Op::kOverdraw, {.kind = Extra::Kind::kMore, .charges = leg.charges});
  }
  work.step = Work::Step::kDone;
}

}  // namespace weir::store::route
