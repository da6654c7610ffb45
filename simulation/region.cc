#include "region.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace weir::simulation {

using store::lease::Holding;
using store::lease::Lot;
using store::lease::Taken;

/// A question to the home store.
struct Region::Ask {
  std::string key;
  Quota quota;
  store::Charge charge = {};
  Decision decision = {};
  store::Application application = {};
  Nanos sent = 0;
  std::uint64_t life = 0;
  bool over = false;
};

Region::Region(Events& events, Server& home, const Scenario& scenario, std::uint64_t seed,
               Server::OnCharged on_charged)
    : events_(events),
      scenario_(scenario),
      on_charged_(std::move(on_charged)),
      terms_(*algorithm::TermsFor(scenario.quota)),
      random_(seed),
      clock_(events, static_cast<Nanos>(seed % (std::uint64_t{1} << 50)),
             seed % 2 == 0 ? kWorstPpm : -kWorstPpm),
      pulse_(std::make_shared<Pulse>()),
      home_(events, home, scenario, link_, random_, pulse_) {
  Tick();
}

Region::~Region() = default;

void Region::Crash() {
  holdings_.clear();
  ++life_;
}

void Region::Apply(std::span<store::Application> batch) {
  const Nanos now = clock_.Now();
  for (store::Application& application : batch) {
    application.status = {};
    application.applied = true;
    for (std::size_t i = 0; i < application.decisions.size(); ++i) {
      application.decisions[i] = {};
      application.decisions[i].limit = application.charges[i].quota->limit();
    }
    Decide(application, now);
  }
}

void Region::Decide(store::Application& application, Nanos now) {
  if (application.charges.size() != 1) return;
  const store::Charge& charge = application.charges.front();
  if (application.op == store::Op::kReturn) {
    const auto found = holdings_.find(std::string(charge.key));
    if (found == holdings_.end()) return;
    found->second.PutBack(
        now, {.lot = static_cast<std::uint64_t>(application.lease), .count = charge.cost});
    return;
  }
  if (application.op == store::Op::kCharge) {
    Charge(charge, Watch(charge.key, charge.cost, now), application, now);
  } else if (application.op == store::Op::kLease) {
    Lease(charge, Watch(charge.key, charge.cost, now), application, now);
  }
}

void Region::Charge(const store::Charge& charge, Holding& holding, store::Application& application,
                    Nanos now) {
  std::vector<Taken> taken;
  application.applied = holding.Take(now, charge.cost, 0, 0, taken);
  application.decisions[0] = holding.Estimate(now, application.applied);
  if (application.applied) on_charged_(charge.key, charge.cost);
}

/// From one grant, which names the lease; halves, as the stores do.
void Region::Lease(const store::Charge& charge, Holding& holding, store::Application& application,
                   Nanos now) {
  const Nanos term = scenario_.node_term;
  const Nanos rest = scenario_.mutant == Mutant::kRegionOutlived ? 0 : term + term / 400 + 1;
  Decision& decision = application.decisions[0];
  application.granted = 0;
  for (std::int64_t cost = charge.cost; cost > 0 && application.granted == 0; cost /= 2) {
    std::vector<Taken> taken;
    if (!holding.Take(now, cost, rest, 0, taken)) continue;
    application.granted = taken.front().count;
    application.at = static_cast<Nanos>(taken.front().lot);
    for (std::size_t i = 1; i < taken.size(); ++i) holding.PutBack(now, taken[i]);
  }
  application.applied = application.granted > 0;
  decision = holding.Estimate(now, application.applied);
  // A window ends with the grant: it lasts at least as long as the node may spend.
  decision.reset_after = std::chrono::nanoseconds(term + 1);
  if (scenario_.quota.algorithm() == Algorithm::kSlidingCounter) {
    const Nanos width = (terms_.quota.window().count() - 1) / terms_.quota.buckets() + 1;
    decision.reset_after += std::chrono::nanoseconds(width * terms_.quota.buckets());
  }
}

Holding& Region::Watch(std::string_view key, std::int64_t cost, Nanos now) {
  const auto found = holdings_.try_emplace(std::string(key), terms_, now).first;
  Holding& holding = found->second;
  // Whatever a region is asked for, it leases.
  constexpr int kEnough = 8;
  for (int i = 0; i < kEnough; ++i) holding.Note(now, i == 0 ? cost : 0);
  if (holding.ShouldAsk(now)) {
    holding.Asked();
    AskHome(found->first, store::Op::kLease, holding.Want(now), 0);
  }
  return holding;
}

void Region::AskHome(const std::string& key, store::Op op, std::int64_t cost, Nanos at) {
  auto ask = std::make_shared<Ask>(Ask{.key = key, .quota = terms_.quota});
  ask->charge = {ask->key, cost, &ask->quota};
  ask->application.op = op;
  ask->application.lease = at;
  ask->application.charges = {&ask->charge, 1};
  ask->application.decisions = {&ask->decision, 1};
  ask->sent = clock_.Now();
  ask->life = life_;
  home_.Apply({&ask->application, 1}, [this, ask] { OnAnswer(ask); });
  if (op != store::Op::kLease) return;
  events_.At(events_.now() + 2 * terms_.term, [this, ask] {
    if (std::exchange(ask->over, true) || ask->life != life_) return;
    const auto found = holdings_.find(ask->key);
    if (found != holdings_.end()) found->second.Failed(clock_.Now());
  });
}

void Region::OnAnswer(const std::shared_ptr<Ask>& ask) {
  if (ask->application.op != store::Op::kLease || ask->life != life_) return;
  if (std::exchange(ask->over, true)) return;
  const auto found = holdings_.find(ask->key);
  if (found == holdings_.end()) return;
  const store::Application& answer = ask->application;
  found->second.OnGrant({.grant = {answer.granted, answer.at, ask->decision},
                         .id = ++grants_,
                         .want = ask->charge.cost,
                         .sent = ask->sent,
                         .now = clock_.Now(),
                         .pause = terms_.term / 4},
                        {});
}

void Region::Tick() {
  const Nanos now = clock_.Now();
  for (auto& [key, holding] : holdings_) {
    holding.Expire(now);
    holding.Pass(now);
    if (!holding.slack(now)) continue;
    for (const Lot& lot : holding.Surrender()) {
      if (lot.left > 0) AskHome(key, store::Op::kReturn, lot.left, lot.at);
    }
  }
  events_.At(pulse_->Due(events_.now() + terms_.term / 8), [this] { Tick(); });
}

}  // namespace weir::simulation
