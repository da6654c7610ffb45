#pragma once

// A limiter that records its checks and answers as a test tells it to, immediately or later.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "limiter/limiter.h"

namespace weir::grpc::testing {

/// A check as it was received, with copies of what it pointed to.
struct Asked {
  std::string domain;
  std::vector<std::vector<std::pair<std::string, std::string>>> descriptors;
  store::Op op = store::Op::kCharge;
  std::int64_t cost = 0;
  std::int64_t lease = 0;
  std::vector<limiter::Permit> permits;
  std::vector<std::int64_t> costs;
  std::vector<int> reported;
  std::vector<std::string> override_texts;
};

class FakeLimiter final : public limiter::Limiter {
 public:
  /// Fills the answer of a check.
  using Script = std::function<void(limiter::Check&)>;

  explicit FakeLimiter(Script script) : script_(std::move(script)) {}

  void Decide(std::span<limiter::Check> checks, store::Done done) override {
    calls_.push_back(checks.size());
    for (limiter::Check& check : checks) {
      Remember(check);
      script_(check);
    }
    if (later_) {
      waiting_.push_back(std::move(done));
    } else {
      done();
    }
  }

  void Apply(std::span<store::Application>, store::Done done) override { done(); }

  telemetry::Tracer* tracer() const noexcept override { return tracer_; }
  void SetTracer(telemetry::Tracer* tracer) { tracer_ = tracer; }

  void AnswerLater() { later_ = true; }
  /// Completes the i-th of the waiting calls.
  void Complete(std::size_t i) { std::exchange(waiting_.at(i), nullptr)(); }

  const std::vector<Asked>& asked() const { return asked_; }
  /// Sizes of the batches, one per call of Decide.
  const std::vector<std::size_t>& calls() const { return calls_; }

 private:
  void Remember(const limiter::Check& check) {
    Asked asked;
    asked.domain = check.request.domain;
    for (const policy::Descriptor& descriptor : check.request.descriptors) {
      auto& entries = asked.descriptors.emplace_back();
      for (const policy::Entry& entry : descriptor) {
        entries.emplace_back(std::string(entry.key), std::string(entry.value));
      }
    }
    asked.op = check.op;
    asked.cost = check.request.cost;
    asked.lease = check.lease;
    asked.permits = check.permits;
    asked.costs.assign(check.request.costs.begin(), check.request.costs.end());
    asked.reported.assign(check.request.reported.begin(), check.request.reported.end());
    for (const Quota* quota : check.request.overrides) {
      asked.override_texts.push_back(quota == nullptr ? "" : quota->ToString());
    }
    asked_.push_back(std::move(asked));
  }

  Script script_;
  telemetry::Tracer* tracer_ = nullptr;
  bool later_ = false;
  std::vector<store::Done> waiting_;
  std::vector<Asked> asked_;
  std::vector<std::size_t> calls_;
};

/// Adds a verdict to a check, as the limiter would.
inline void AddVerdict(limiter::Check& check, std::size_t descriptor, std::string_view policy,
                       const Quota* quota, const Decision& decision, bool shadow = false) {
  limiter::PolicyVerdict verdict;
  verdict.policy = policy;
  verdict.quota = quota;
  verdict.descriptor = descriptor;
  verdict.decision = decision;
  verdict.shadow = shadow;
  check.verdicts.push_back(verdict);
}

}  // namespace weir::grpc::testing
