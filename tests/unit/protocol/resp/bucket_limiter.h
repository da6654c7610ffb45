#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/token_bucket.h"
#include "limiter/limiter.h"
#include "weir/clock.h"

namespace weir::resp {

/// A limiter that supports only token buckets, with a manual clock. It answers immediately, or
/// when the test says so. A key under policy has ten permits, one refilled each second. Not
/// thread-safe.
class BucketLimiter final : public limiter::Limiter {
 public:
  ManualClock clock{std::int64_t{1'000'000} * 1'000'000'000};
  bool later = false;                     ///< hold answers until AnswerAll
  Status status;                          ///< if not ok: the answer to every check
  std::vector<std::size_t> batches;       ///< the size of each call
  std::vector<std::int64_t> leases;       ///< those that may be released
  std::vector<std::string> reservations;  ///< those that may be settled
  std::string policy = "ten";             ///< the policy that decides every key
  bool estimated = false;                 ///< the remaining count is an estimate
  telemetry::Tracer* tracer_in_use = nullptr;

  telemetry::Tracer* tracer() const noexcept override { return tracer_in_use; }

  void Apply(std::span<store::Application> batch, store::Done done) override {
    batches.push_back(batch.size());
    Run(
        [this, batch] {
          for (store::Application& application : batch) {
            const store::Charge& charge = application.charges[0];
            auto& state = buckets_[std::string(charge.key)];
            application.decisions[0] =
                algorithm::Acquire(*charge.quota, state, clock.Now(), charge.cost);
            application.status = status;
          }
        },
        std::move(done));
  }

  void Decide(std::span<limiter::Check> checks, store::Done done) override {
    batches.push_back(checks.size());
    Run(
        [this, checks] {
          for (limiter::Check& check : checks) Decide(check);
        },
        std::move(done));
  }

  /// Answers all pending checks.
  void AnswerAll() {
    for (auto& answer : std::exchange(waiting_, {})) answer();
  }
  /// The store's keys that Apply has seen.
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const auto& [key, state] : buckets_) names.push_back(key);
    return names;
  }
  std::size_t waiting() const { return waiting_.size(); }
  /// Every key is fresh again, and no check is pending.
  void Forget() {
    buckets_.clear();
    policies_.clear();
    waiting_.clear();
    leases.clear();
    reservations.clear();
  }

 private:
  void Run(std::function<void()> decide, store::Done done) {
    auto answer = [decide = std::move(decide), done = std::move(done)] {
      decide();
      done();
    };
    if (later) {
      waiting_.push_back(answer);
    } else {
      answer();
    }
  }

  void Decide(limiter::Check& check) {
    static const Quota quota = *Quota::TokenBucket(10, 1);
    auto& state = policies_[std::string(check.request.key)];
    check.status = status;
    check.policy = policy;
    check.estimated = estimated;
    const std::int64_t cost = check.request.cost;
    switch (check.op) {
      case store::Op::kCharge:
        check.decision = algorithm::Acquire(quota, state, clock.Now(), cost);
        check.reservation.clear();
        if (check.reserve.count() > 0 && check.decision.allowed()) {
          check.reservation = "until-" + std::to_string(check.reserve.count());
          reservations.push_back(check.reservation);
        }
        break;
      case store::Op::kSettle:
        check.decision = {};
        check.applied = std::erase(reservations, check.settles) > 0;
        break;
      case store::Op::kPeek: {
        auto copy = state;
        check.decision = algorithm::Acquire(quota, copy, clock.Now(), cost);
        break;
      }
      case store::Op::kRefund:
        check.decision = algorithm::Refund(quota, state, clock.Now(), cost);
        break;
      case store::Op::kOverdraw:
        check.decision = algorithm::Overdraw(quota, state, clock.Now(), cost);
        break;
      case store::Op::kReset:
        state = {};
        check.decision = {};
        break;
      case store::Op::kRelease:
        check.decision = {};
        check.applied = std::erase(leases, check.lease) > 0;
        break;
      case store::Op::kLease:
      case store::Op::kReturn:
        break;  // no client sends these
    }
  }

  std::map<std::string, algorithm::TokenBucketState> buckets_;
  std::map<std::string, algorithm::TokenBucketState> policies_;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace weir::resp
