#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "limiter/policy_limiter.h"
#include "policy/policy_file.h"
#include "policy/policy_set.h"
#include "store/memory/memory_store.h"

namespace weir::limiter::test {

/// A moment on a whole day, so that windows of any usual length begin there.
inline constexpr Nanos kStart = Nanos{20'000} * 86'400 * 1'000'000'000;

/// Everything behind a limiter, on the memory store and a clock that stands still.
class World {
 public:
  explicit World(std::string_view policies = "", double share = 0.1)
      : share_(share),
        live_(CompileText(policies)),
        engine_(
            *Quota::TokenBucket(1, 1),
            EngineOptions{
                .max_keys = 100'000, .keys = KeyStorage::kText, .clock = &clock_, .on_evict = {}}),
        shared_(live_, ids_, Fallback::Options{.share = share, .clock = &clock_}) {}

  std::shared_ptr<const policy::PolicySet> CompileText(std::string_view text,
                                                       std::string_view other_file = "") {
    std::vector<policy::yaml::Problem> problems;
    auto definitions = policy::ParsePolicies(text, "p.yaml", problems);
    for (auto& definition : policy::ParsePolicies(other_file, "other.yaml", problems)) {
      definitions.push_back(std::move(definition));
    }
    EXPECT_EQ(policy::yaml::ToString(problems), "");
    auto set =
        policy::PolicySet::Compile(std::move(definitions), {policy::DefaultPolicy(), share_}, ids_);
    EXPECT_TRUE(set.ok()) << set.error().message;
    return *set;
  }

  void Publish(std::string_view text, std::string_view other_file = "") {
    live_.Publish(CompileText(text, other_file));
  }

  std::unique_ptr<PolicyLimiter> NewLimiter() {
    return std::make_unique<PolicyLimiter>(shared_,
                                           std::make_unique<store::memory::MemoryStore>(engine_));
  }

  ManualClock& clock() { return clock_; }
  Engine& engine() { return engine_; }
  Shared& shared() { return shared_; }

  PolicyCounts CountsOf(std::string_view policy) const {
    for (PolicyCounts& counts : shared_.counters.Policies()) {
      if (counts.policy == policy) return counts;
    }
    return {};
  }

 private:
  const double share_;
  ManualClock clock_{kStart};
  policy::PolicyIds ids_;
  policy::LivePolicies live_;
  Engine engine_;
  Shared shared_;
};

/// One check with one descriptor, and the memory it points to.
class Asked {
 public:
  static Asked For(std::vector<policy::Entry> entries, std::int64_t cost = 1,
                   store::Op op = store::Op::kCharge) {
    return Asked(std::move(entries), cost, op, {});
  }
  static Asked Key(std::string_view key, std::int64_t cost = 1, store::Op op = store::Op::kCharge) {
    return Asked({}, cost, op, key);
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  Check& On(Limiter& limiter) {
    bool told = false;
    limiter.Decide(std::span(&check, 1), [&told] { told = true; });
    EXPECT_TRUE(told);
    return check;
  }

  Check check;

 private:
  Asked(std::vector<policy::Entry> entries, std::int64_t cost, store::Op op, std::string_view key)
      : entries_(std::move(entries)), descriptor_(entries_) {
    check.request.descriptors = std::span(&descriptor_, 1);
    check.request.cost = cost;
    check.request.key = key;
    check.op = op;
  }

  std::vector<policy::Entry> entries_;
  policy::Descriptor descriptor_;
};

}  // namespace weir::limiter::test
