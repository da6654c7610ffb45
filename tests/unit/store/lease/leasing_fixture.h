#pragma once

// A leasing store over the memory store, with a manual clock and manual timers.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithm/lease.h"
#include "store/lease/leasing_store.h"
#include "store/memory/memory_store.h"
#include "unit/store/lease/manual_timers.h"

namespace weir::store::lease {

using test::ManualTimers;

/// The memory store with a call counter, which can be shut off.
class CountingStore final : public Store {
 public:
  struct Book {
    std::map<Op, int> applications;
    bool shut = false;
  };
  CountingStore(Engine& engine, Book& book) : inner_(engine), book_(book) {}
  void Apply(std::span<Application> batch, Done done) override {
    for (Application& application : batch) ++book_.applications[application.op];
    if (!book_.shut) return inner_.Apply(batch, std::move(done));
    for (Application& application : batch) {
      application.status = Error{Code::kUnavailable, "shut"};
    }
    done();
  }

 private:
  memory::MemoryStore inner_;
  Book& book_;
};

class LeasingStoreTest : public testing::Test {
 protected:
  static constexpr Nanos kStart = Nanos{1'700'000'000} * 1'000'000'000;

  bool Charge(std::string_view key = "hot", std::int64_t cost = 1) {
    return ChargeAll({{key, cost, &terms_.quota}}, {&terms_});
  }
  bool ChargeAll(std::vector<store::Charge> charges,
                 std::vector<const algorithm::LeaseTerms*> terms) {
    return Apply(Op::kCharge, std::move(charges), std::move(terms));
  }
  bool Refund(std::vector<store::Charge> charges, std::vector<const algorithm::LeaseTerms*> terms) {
    return Apply(Op::kRefund, std::move(charges), std::move(terms));
  }
  bool Apply(Op op, std::vector<store::Charge> charges,
             std::vector<const algorithm::LeaseTerms*> terms) {
    std::vector<Decision> decisions(charges.size());
    last_ = {};
    last_.op = op;
    last_.charges = charges;
    last_.decisions = decisions;
    last_.terms = terms;
    store_->Apply({&last_, 1}, [] {});
    timers_.RunSoon();
    decision_ = decisions.front();
    return last_.status.ok() && last_.applied;
  }
  void Warm() {
    for (int i = 0; i < 12; ++i) EXPECT_TRUE(Charge());
  }
  void Ring() { timers_.Ring(); }
  std::int64_t Remaining() { return engine_.Peek("hot", terms_.quota, 1).remaining; }
  LeaseMetrics& metrics() { return *leases_.metrics().front(); }

  ManualClock clock_{kStart};
  algorithm::LeaseTerms terms_ = *algorithm::TermsFor(*Quota::TokenBucket(1000, 100));
  Engine engine_{*Quota::TokenBucket(1, 1), EngineOptions{.clock = &clock_}};
  CountingStore::Book book_;
  ManualTimers::Set timers_;
  Leases leases_{LeaseOptions{.max_keys = 10, .clock = &clock_, .seed = 1}};
  std::unique_ptr<LeasingStore> store_ =
      std::make_unique<LeasingStore>(std::make_unique<ManualTimers>(timers_), leases_,
                                     std::make_unique<CountingStore>(engine_, book_));
  Application last_;
  Decision decision_;
};

}  // namespace weir::store::lease
