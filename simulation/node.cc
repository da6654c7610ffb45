#include "node.h"

#include <algorithm>
#include <utility>

namespace weir::simulation {
namespace {

policy::Definition Define(std::string name, const Quota& quota, policy::Mode mode, bool local) {
  policy::Definition definition;
  definition.name = std::move(name);
  definition.quota = quota;
  definition.mode = mode;
  definition.on_store_error = local ? policy::OnStoreError::kLocal : policy::OnStoreError::kDeny;
  definition.match = {policy::MakeEntryMatch(definition.name, "*")};
  definition.has_match = true;
  definition.source = "simulation";
  return definition;
}

store::guard::GuardOptions GuardOptionsOf(const Scenario& scenario, const Clock& clock,
                                          std::uint32_t seed) {
  store::guard::GuardOptions options;
  options.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::nanoseconds(scenario.timeout));
  options.clock = &clock;
  options.quiet = true;
  options.breaker.seed = seed;
  options.cache.max_keys = 0;  // no channel between nodes here
  return options;
}

store::lease::LeaseOptions LeaseOptionsOf(const Scenario& scenario, const Clock& clock,
                                          std::uint32_t seed) {
  store::lease::LeaseOptions options;
  options.clock = &clock;
  options.seed = seed;
  options.flaws.from_receipt = scenario.mutant == Mutant::kFromReceipt;
  options.flaws.after_term = scenario.mutant == Mutant::kAfterTerm;
  options.flaws.past_window = scenario.mutant == Mutant::kPastWindow;
  options.flaws.refund_in_store = scenario.mutant == Mutant::kRefundInStore;
  options.flaws.full_share = scenario.mutant == Mutant::kFullShare;
  options.flaws.share_outlived = scenario.mutant == Mutant::kShareOutlived;
  options.flaws.late_share = scenario.mutant == Mutant::kLateShare;
  options.flaws.permit_outlived = scenario.mutant == Mutant::kPermitOutlived;
  options.flaws.permit_kept = scenario.mutant == Mutant::kPermitKept;
  return options;
}

std::uint32_t Seed(std::mt19937_64& random) { return static_cast<std::uint32_t>(random() | 1U); }

}  // namespace

std::shared_ptr<const policy::PolicySet> Policies(const Scenario& scenario, const Quota& quota,
                                                  policy::PolicyIds& ids) {
  std::vector<policy::Definition> definitions;
  const policy::Mode mode = scenario.exact ? policy::Mode::kExact : policy::Mode::kLeased;
  definitions.push_back(Define(std::string(kHot), quota, mode, scenario.local));
  if (scenario.two_keys) {
    const policy::Mode other = scenario.both_leased ? policy::Mode::kLeased : policy::Mode::kExact;
    definitions.push_back(Define(std::string(kOther), scenario.other(), other, scenario.local));
  }
  auto set =
      *policy::PolicySet::Compile(std::move(definitions), {policy::DefaultPolicy(), 0.1}, ids);
  if (scenario.share_term != 0 && !scenario.exact) {
    // The default term is longer than most runs.
    const_cast<policy::Policy&>(set->policies().front()).lease =
        *algorithm::RateTermsFor(quota, std::chrono::nanoseconds(scenario.share_term));
  }
  if (scenario.node_term == 0) return set;
  // It is not shared yet. Nodes of a region lease for less than the region does.
  for (const policy::Policy& policy : set->policies()) {
    const_cast<policy::Policy&>(policy).lease =
        *algorithm::RegionTermsFor(quota, algorithm::kLongestLease);
  }
  return set;
}

/// Between the leasing store and the guard: sees which charges go to the store, and breaks the
/// rules that are broken on the wire.
class Process::Tap final : public store::Store {
 public:
  Tap(Process& process, store::Store& inner) : process_(process), inner_(inner) {}

  void Apply(std::span<store::Application> batch, store::Done done) override {
    for (store::Application& application : batch) {
      const bool charges = application.op == store::Op::kCharge;
      for (const store::Charge& charge : application.charges) {
        if (charges) process_.sent_.insert(charge.key.data());
      }
      Break(application);
    }
    inner_.Apply(batch, std::move(done));
  }

 private:
  void Break(store::Application& application) const {
    const Mutant mutant = process_.scenario_.mutant;
    const bool refunds = mutant == Mutant::kFullRefund || mutant == Mutant::kNewestFirst;
    if (refunds && application.op == store::Op::kReturn) application.op = store::Op::kRefund;
    if (mutant != Mutant::kNoHeadroom && mutant != Mutant::kLogNotWidened &&
        mutant != Mutant::kSharedTwice && mutant != Mutant::kPermitNotWidened) {
      return;
    }
    // The charges are in the caller's memory, which we may only read.
    for (const store::Charge& charge : application.charges) {
      if (charge.quota->algorithm() != process_.scenario_.quota.algorithm()) continue;
      if (!charge.key.starts_with("default/hot")) continue;
      const_cast<store::Charge&>(charge).quota = &process_.scenario_.quota;
    }
  }

  Process& process_;
  store::Store& inner_;
};

/// A check in progress.
struct Process::Pending {
  policy::Entry entries[2];
  policy::Descriptor descriptors[1];
  limiter::Check check;
  bool done = false;
};

Process::Process(Events& events, Upstream& server, const Scenario& scenario, const NodeClock& clock,
                 Link& link, std::mt19937_64& random, std::shared_ptr<const Pulse> pulse,
                 const policy::LivePolicies& policies, const policy::PolicyIds& ids, Told told)
    : scenario_(scenario),
      told_(std::move(told)),
      guard_(GuardOptionsOf(scenario, clock, Seed(random))),
      leases_(LeaseOptionsOf(scenario, clock, Seed(random))),
      shared_(policies, ids,
              limiter::Fallback::Options{.max_keys = 100, .share = 0.1, .clock = &clock}) {
  const auto timers = [&] { return std::make_unique<NodeTimers>(events, clock, pulse); };
  guarded_ = std::make_unique<store::guard::GuardedStore>(
      timers(), guard_,
      std::make_unique<RemoteStore>(events, server, scenario, link, random, pulse));
  prober_ = std::make_unique<store::guard::Prober>(timers(), guard_, *guarded_);
  auto leasing = std::make_unique<store::lease::LeasingStore>(
      timers(), leases_, std::make_unique<Tap>(*this, *guarded_));
  leasing_ = leasing.get();
  metrics_ = leases_.metrics().front();
  shared_.observe.refusals_per_second = 0;  // a run refuses thousands
  limiter_ = std::make_unique<limiter::PolicyLimiter>(shared_, std::move(leasing));
}

Process::~Process() {
  prober_.reset();
  guarded_->Close();  // answers everything that still waits
  limiter_.reset();
}

void Process::Check(std::int64_t cost) { Decide(store::Op::kCharge, cost); }

void Process::Refund(std::int64_t cost) {
  Decide(store::Op::kRefund, cost);
  // The effect of one that goes to the store is determined by the quota's step.
  if (scenario_.mutant == Mutant::kRefundInStore) told_.refunded(cost);
}

void Process::Decide(store::Op op, std::int64_t cost, std::int64_t lease) {
  std::erase_if(pending_, [](const auto& one) { return one->done; });
  Pending& pending = *pending_.emplace_back(std::make_unique<Pending>());
  pending.entries[0] = {kHot, "1"};
  pending.entries[1] = {kOther, "1"};
  pending.descriptors[0] = std::span(pending.entries);
  pending.check.request.descriptors = pending.descriptors;
  pending.check.request.cost = cost;
  pending.check.op = op;
  pending.check.lease = lease;
  limiter_->Decide({&pending.check, 1}, [this, &pending] { Finish(pending); });
}

/// What went to the store is in the server's ledger; the rest was spent here.
void Process::Finish(Pending& pending) {
  const limiter::Check& check = pending.check;
  pending.done = true;
  if (const std::uint64_t all = metrics_->refunded.value(); all != refunded_) {
    told_.refunded(static_cast<std::int64_t>(all - std::exchange(refunded_, all)));
  }
  if (check.op != store::Op::kCharge) return;
  const bool allowed = check.status.ok() && check.decision.allowed();
  ++(allowed ? allowed_ : refused_);
  bool degraded = false;
  std::int64_t lease = 0;
  for (const limiter::PolicyVerdict& verdict : check.verdicts) {
    lease = std::max(lease, verdict.decision.lease);
    const bool sent = sent_.erase(verdict.key.data()) > 0;
    if (!allowed || (sent && !verdict.degraded)) continue;
    degraded |= verdict.degraded;
    told_.spent({verdict.key, check.request.cost, verdict.degraded, verdict.decision.lease});
  }
  if (allowed && !degraded) told_.admitted(check.request.cost, lease);
}

}  // namespace weir::simulation
