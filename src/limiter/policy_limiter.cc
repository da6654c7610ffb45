#include "limiter/policy_limiter.h"

#include <algorithm>
#include <utility>

#include "algorithm/stricter.h"
#include "store/in_part.h"

namespace weir::limiter {
namespace {

// The policy name in answers for a request's own quota.
constexpr std::string_view kOverrideName = "override";

// Idle batches beyond this many are freed.
constexpr std::size_t kMaxIdle = 64;

store::Fault FaultOf(const store::Application& application) noexcept {
  return store::FaultOf(application.status.error().code);
}

PolicyVerdict VerdictOf(const Batch& batch, const Batch::Item& item) {
  PolicyVerdict verdict;
  verdict.policy = item.settles != nullptr  ? std::string_view(item.settles->policy)
                   : item.policy == nullptr ? kOverrideName
                                            : std::string_view(item.policy->definition.name);
  verdict.quota = item.quota;
  verdict.rule = item.policy;
  verdict.descriptor = item.descriptor;
  verdict.key = batch.KeyOf(item);
  verdict.shadow = item.shadow();
  return verdict;
}

/// Such a policy never blocks by itself, but Envoy is notified of it.
bool InQuotaMode(const PolicyVerdict& verdict) noexcept {
  return verdict.rule != nullptr && verdict.rule->definition.quota_mode;
}

/// A policy that admits nothing has a quota only because the store needs one.
void ShowBlocked(Check& check) noexcept {
  for (PolicyVerdict& verdict : check.verdicts) {
    if (verdict.rule == nullptr || !verdict.rule->definition.blocked) continue;
    verdict.decision.limit = 0;
    verdict.decision.remaining = 0;
  }
}

/// The store returns what each charge would have left. When one of those that go together was
/// refused, none was charged, so the others have that much more.
void ShowUncharged(const Batch& batch, std::span<const Batch::Item> items,
                   std::span<PolicyVerdict> verdicts) noexcept {
  const auto refused = [&](std::size_t i) {
    return items[i].together() && !verdicts[i].decision.allowed();
  };
  bool none_charged = false;
  for (std::size_t i = 0; i < items.size(); ++i) none_charged = none_charged || refused(i);
  if (!none_charged) return;
  for (std::size_t i = items.size(); i-- > 0;) {
    Decision& decision = verdicts[i].decision;
    if (!items[i].together() || !decision.allowed()) continue;
    // A bucket that several items share has what all of them so far would have taken.
    std::int64_t back = batch.charged(items[i]).cost;
    for (std::size_t k = 0; k < i; ++k) {
      const bool before = &batch.charged(items[k]) == &items[k] &&
                          &batch.charged(items[i]) == &items[i] && items[k].together() &&
                          verdicts[k].decision.allowed();
      if (before && batch.KeyOf(items[k]) == batch.KeyOf(items[i])) back += items[k].cost;
    }
    decision.remaining = std::min(decision.remaining + back, decision.limit);
  }
}

}  // namespace

PolicyLimiter::PolicyLimiter(Shared& shared, std::unique_ptr<store::Store> store)
    : shared_(shared),
      store_(std::move(store)),
      counters_(shared.counters.Add()),
      sampler_(shared.top.Add()),
      observer_(shared.observe) {}

PolicyLimiter::~PolicyLimiter() = default;

void PolicyLimiter::Refresh() {
  const std::uint64_t version = shared_.policies.version();
  if (version == version_) return;
  // The version is read first: if the policies change in between, the next check reads them again.
  current_ =
      std::make_shared<const std::shared_ptr<const policy::PolicySet>>(shared_.policies.Current());
  version_ = version;
}

std::unique_ptr<Batch> PolicyLimiter::TakeBatch() {
  if (idle_.empty()) return std::make_unique<Batch>();
  std::unique_ptr<Batch> batch = std::move(idle_.back());
  idle_.pop_back();
  return batch;
}

void PolicyLimiter::Decide(std::span<Check> checks, store::Done done) {
  Refresh();
  std::unique_ptr<Batch> batch = TakeBatch();
  if (observer_.traces()) batch->asked_at = SystemClock::Get().Now();
  batch->store_asked_at = 0;
  batch->Build(current_, checks);
  batch->done = std::move(done);
  Batch* raw = batch.release();
  if (raw->applications().empty()) {
    Finish(raw);
    return;
  }
  if (observer_.traces()) raw->store_asked_at = SystemClock::Get().Now();
  if ((*current_)->any_unable()) [[unlikely]]
    return AskAble(raw);
  store_->Apply(raw->applications(), [this, raw] { Finish(raw); });
}

std::shared_ptr<const void> PolicyLimiter::Keep() {
  return finishing_ == nullptr ? nullptr : std::shared_ptr<const void>(std::move(*finishing_));
}

void PolicyLimiter::AskAble(Batch* raw) {
  const std::span<store::Application> able = raw->WithoutUnable();
  if (able.empty()) return Finish(raw);
  store_->Apply(able, [this, raw] {
    raw->TakeAnswers();
    Finish(raw);
  });
}

void PolicyLimiter::Apply(std::span<store::Application> batch, store::Done done) {
  std::unique_ptr<Given> given;
  if (idle_given_.empty()) {
    given = std::make_unique<Given>();
  } else {
    given = std::move(idle_given_.back());
    idle_given_.pop_back();
  }
  given->applications = batch;
  given->done = std::move(done);
  given->asked_at = observer_.traces() ? SystemClock::Get().Now() : 0;
  store_->Apply(batch, [this, raw = given.release()] { FinishApply(raw); });
}

void PolicyLimiter::FinishApply(Given* raw) {
  std::unique_ptr<Given> given(raw);
  const Nanos now = observer_.traces() ? SystemClock::Get().Now() : 0;
  for (const store::Application& application : given->applications) {
    if (application.op != store::Op::kCharge) continue;
    if (!application.status.ok()) {
      counters_->Raise(CounterTable::kChecksFailed);
      continue;
    }
    // All or none are charged; the first that refuses is reported.
    const auto& decisions = application.decisions;
    std::size_t blamed = 0;
    while (blamed < decisions.size() && decisions[blamed].allowed()) ++blamed;
    const bool allowed = blamed == decisions.size();
    counters_->Raise(allowed ? CounterTable::kChecksAllowed : CounterTable::kChecksLimited);
    const std::string_view key = application.charges[allowed ? 0 : blamed].key;
    sampler_->Note(key, kNoPolicy, allowed ? Outcome::kAllowed : Outcome::kLimited);
    const Decision& decision = decisions[allowed ? 0 : blamed];
    // Charges without policies come from the Redis protocol.
    if (!allowed) [[unlikely]]
      observer_.Refused("resp", key, decision);
    if (observer_.traces()) {
      observer_.TraceCharge("CL.THROTTLE", key, decision, {given->asked_at, given->asked_at, now});
    }
  }
  const store::Done done = std::exchange(given->done, nullptr);
  done();
  if (idle_given_.size() < kMaxIdle) idle_given_.push_back(std::move(given));
}

void PolicyLimiter::Finish(Batch* raw) {
  std::unique_ptr<Batch> batch(raw);
  for (std::size_t i = 0; i < batch->checks.size(); ++i) {
    FinishCheck(*batch, i);
    observer_.Told(batch->checks[i]);
  }
  if (observer_.traces() || observer_.keeps_remaining()) [[unlikely]]
    Observe(*batch);
  const store::Done done = std::exchange(batch->done, nullptr);
  std::unique_ptr<Batch>* const outer = std::exchange(finishing_, &batch);
  done();
  finishing_ = outer;
  if (batch == nullptr) return;  // Keep() was called
  batch->Forget();
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(batch));
}

void PolicyLimiter::FinishCheck(Batch& batch, std::size_t index) {
  Check& check = batch.checks[index];
  const std::span<const Batch::Item> items = batch.ItemsOf(index);
  check.verdicts.clear();
  check.degraded = false;
  check.degraded_by = {};
  check.estimated = false;
  check.applied = check.op != store::Op::kRelease;
  for (const Batch::Item& item : items) {
    const Batch::Item& charged = batch.charged(item);
    const bool asked = charged.application != Batch::kNone;
    // A release reports nothing for policies that hold none of its permits.
    if (check.op == store::Op::kRelease && (!asked || &charged != &item)) continue;
    PolicyVerdict& verdict = check.verdicts.emplace_back(VerdictOf(batch, item));
    if (!asked) continue;
    const store::Application& application = batch.applications()[charged.application];
    if (application.status.ok()) {
      verdict.decision = application.decisions[charged.position];
      // The lease of a reserved token bucket names the charge, not permits.
      if (charged.quota->algorithm() != Algorithm::kConcurrency) verdict.decision.lease = 0;
      verdict.estimated = application.estimated;
      // The limit of the quota itself, not of the narrowed one.
      if (item.lease != nullptr) verdict.decision.limit = item.quota->limit();
      if (item.settles != nullptr) verdict.decision.limit = item.settles->limit;
    }
    if (check.op == store::Op::kRelease) {
      FinishRelease(batch, item, check);
    } else if (!application.status.ok()) {
      verdict.degraded = true;
      check.degraded = true;
      if (!item.shadow()) {
        check.degraded_by = policy::OnStoreErrorName(RuleOf(item, FaultOf(application)));
      }
    }
  }
  if (check.degraded) DecideWithoutStore(batch, check, items);
  ShowBlocked(check);
  Combine(check);
  DecideUnmatched(check);
  if (check.op == store::Op::kCharge && !check.decision.allowed()) {
    ReleaseRefused(batch, check, items);
    ShowUncharged(batch, items, check.verdicts);
  }
  if (check.op == store::Op::kSettle) check.applied = check.status.ok() && batch.Settled(index);
  check.reservation.clear();
  if (check.reserve.count() > 0 && check.status.ok() && check.decision.allowed()) {
    batch.WriteReservation(index, check.reservation);
  }
  Count(batch, index);
}

void PolicyLimiter::FinishRelease(Batch& batch, const Batch::Item& item, Check& check) {
  const store::Application& application = batch.applications()[item.application];
  // A permit that the store does not know may have been granted here while it was down.
  const bool released = (application.status.ok() && application.applied) ||
                        shared_.fallback.Release(batch, item, application.lease);
  check.applied |= released;
  if (!released && !application.status.ok()) check.status = application.status;
}

void PolicyLimiter::DecideWithoutStore(Batch& batch, Check& check,
                                       std::span<const Batch::Item> items) {
  const bool charge = check.op == store::Op::kCharge;
  if (!charge && check.op != store::Op::kPeek && check.op != store::Op::kOverdraw) {
    bool any = false;
    for (const Batch::Item& item : items) {
      if (item.application == Batch::kNone) continue;
      const store::Application& application = batch.applications()[item.application];
      any = any || application.status.ok();
      if (!application.status.ok()) check.status = application.status;
    }
    if (any && !store::FailsInPart(check.op)) check.status = {};
    check.applied = check.status.ok();
    return;
  }
  std::vector<const Batch::Item*> enforced;  // of one application
  std::vector<std::size_t> places;
  store::Fault fault = store::Fault::kStore;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Batch::Item& item = items[i];
    if (!check.verdicts[i].degraded || &batch.charged(item) != &item) continue;
    const store::Fault its = FaultOf(batch.applications()[item.application]);
    if (!item.together() || check.op == store::Op::kOverdraw) {
      const store::Op op = batch.applications()[item.application].op;
      check.verdicts[i].decision = shared_.fallback.DecideAlone(batch, item, its, op);
    } else {
      fault = its;
      enforced.push_back(&item);
      places.push_back(i);
    }
  }
  std::vector<Decision> decisions(enforced.size());
  shared_.fallback.DecideEnforced(batch, enforced, fault, charge, decisions);
  for (std::size_t k = 0; k < places.size(); ++k) check.verdicts[places[k]].decision = decisions[k];
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Batch::Item& charged = batch.charged(items[i]);
    if (&charged == &items[i]) continue;
    check.verdicts[i].decision =
        check.verdicts[static_cast<std::size_t>(&charged - items.data())].decision;
  }
}

void PolicyLimiter::Combine(Check& check) {
  check.decision = Decision{};
  check.policy = {};
  std::int64_t lease = 0;
  std::int64_t shadow_lease = 0;
  const PolicyVerdict* strictest = nullptr;
  for (const PolicyVerdict& verdict : check.verdicts) {
    if (verdict.shadow) {
      if (shadow_lease == 0) shadow_lease = verdict.decision.lease;
      continue;
    }
    if (check.policy.empty()) check.policy = verdict.policy;  // unlimited, unless one below limits
    if (verdict.quota == nullptr) continue;
    if (lease == 0) lease = verdict.decision.lease;
    if (strictest == nullptr || algorithm::Stricter(verdict.decision, strictest->decision)) {
      strictest = &verdict;
    }
  }
  // Whichever is strictest, the permit to release later is a concurrency quota's.
  if (lease == 0) lease = shadow_lease;
  check.decision.lease = lease;
  if (strictest == nullptr) return;
  check.decision = strictest->decision;
  check.policy = strictest->policy;
  check.estimated = strictest->estimated;
  check.decision.lease = check.decision.allowed() ? lease : 0;
  if (check.op == store::Op::kCharge) check.applied = check.decision.allowed();
}

/// A policy on trial changes nothing, so it does not count if it is the only one that applies.
void PolicyLimiter::DecideUnmatched(Check& check) const {
  const bool asks = check.op == store::Op::kCharge || check.op == store::Op::kPeek ||
                    check.op == store::Op::kOverdraw;
  check.matched = !asks || !check.status.ok() || !check.policy.empty() ||
                  std::any_of(check.verdicts.begin(), check.verdicts.end(), InQuotaMode);
  if (check.matched || !shared_.deny_unmatched) return;
  check.decision = Decision{.verdict = Verdict::kNever};
  check.applied = false;
}

}  // namespace weir::limiter
