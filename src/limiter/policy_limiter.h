#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "limiter/batch.h"
#include "limiter/counters.h"
#include "limiter/fallback.h"
#include "limiter/limiter.h"
#include "limiter/observer.h"
#include "limiter/top_keys.h"
#include "policy/policy_set.h"
#include "store/store.h"

namespace weir::limiter {

/// State shared by the limiters of all reactors. Thread-safe; must outlive them.
struct Shared {
  Shared(const policy::LivePolicies& live, const policy::PolicyIds& ids,
         const Fallback::Options& fallback_options)
      : policies(live), counters(ids), fallback(fallback_options) {}

  const policy::LivePolicies& policies;
  Counters counters;
  TopKeys top;
  Fallback fallback;
  // Must be set before the first limiter is created.
  ObserverOptions observe;
  bool deny_unmatched = false;  ///< refuse requests that no policy applies to
};

/// The Limiter that applies policies.
///
/// Thread safety: one per reactor, called on its thread only.
class PolicyLimiter final : public Limiter {
 public:
  PolicyLimiter(Shared& shared, std::unique_ptr<store::Store> store);
  ~PolicyLimiter() override;

  void Decide(std::span<Check> checks, store::Done done) override;
  std::shared_ptr<const void> Keep() override;
  void Apply(std::span<store::Application> batch, store::Done done) override;
  void NoteRejection(const Rejection& rejection) override { observer_.Rejected(rejection); }
  telemetry::Tracer* tracer() const noexcept override { return observer_.tracer(); }

  /// The policies that the next check will use.
  std::shared_ptr<const policy::PolicySet> policies() const { return shared_.policies.Current(); }

 private:
  void Refresh();
  std::unique_ptr<Batch> TakeBatch();
  /// Sends the store everything except what cannot be charged here: see policy::Policy::unable.
  void AskAble(Batch* raw);
  void Finish(Batch* raw);
  void FinishCheck(Batch& batch, std::size_t index);
  void FinishRelease(Batch& batch, const Batch::Item& item, Check& check);
  void DecideWithoutStore(Batch& batch, Check& check, std::span<const Batch::Item> items);
  void ReleaseRefused(Batch& batch, const Check& check, std::span<const Batch::Item> items);
  void Combine(Check& check);
  void DecideUnmatched(Check& check) const;
  void Count(const Batch& batch, std::size_t index);
  void Sample(const Batch& batch, const Check& check, std::span<const Batch::Item> items);
  void Observe(const Batch& batch);
  void KeepRemaining(const Batch& batch, std::size_t index, Nanos now);
  /// The arguments of an Apply call, until the store has answered.
  struct Given {
    std::span<store::Application> applications;
    store::Done done;
    Nanos asked_at = 0;  // set only if decisions are traced
  };
  void FinishApply(Given* raw);

  Shared& shared_;
  std::unique_ptr<store::Store> store_;
  std::shared_ptr<CounterTable> counters_;
  std::shared_ptr<KeySampler> sampler_;
  Observer observer_;
  std::uint64_t version_ = 0;
  std::shared_ptr<const std::shared_ptr<const policy::PolicySet>> current_;
  std::vector<std::unique_ptr<Batch>> idle_;
  std::vector<std::unique_ptr<Given>> idle_given_;
  std::unique_ptr<Batch>* finishing_ = nullptr;  // the batch whose `done` runs
};

}  // namespace weir::limiter
