#pragma once

// A leasing store on a store whose answers a test holds back.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "store/lease/leasing_store.h"
#include "store/memory/memory_store.h"
#include "unit/store/lease/manual_timers.h"

namespace weir::store::lease::test {

using namespace std::chrono_literals;

struct Held {
  std::span<Application> batch;
  Done done;
};

/// The memory store, which may hold its answers or fail.
class SlowStore final : public Store {
 public:
  struct Book {
    bool hold = false;
    bool shut = false;
    bool answer_at_end = false;  ///< the destructor answers held calls, with 5 permits each
    std::vector<Held> held;
    std::map<Op, int> applications;
  };
  SlowStore(Engine& engine, Book& book) : inner_(engine), book_(book) {}
  ~SlowStore() override {
    if (!book_.answer_at_end) return;
    for (Held& held : std::exchange(book_.held, {})) {
      for (Application& application : held.batch) application.granted = 5;
      held.done();
    }
  }
  void Apply(std::span<Application> batch, Done done) override {
    for (const Application& application : batch) ++book_.applications[application.op];
    if (book_.hold) {
      book_.held.push_back({batch, std::move(done)});
      return;
    }
    if (!book_.shut) return inner_.Apply(batch, std::move(done));
    for (Application& application : batch) application.status = Error{Code::kUnavailable, "shut"};
    done();
  }

 private:
  memory::MemoryStore inner_;
  Book& book_;
};

/// An application and its memory.
struct Asked {
  Asked(Op op, std::vector<Charge> with, std::vector<const algorithm::LeaseTerms*> under)
      : charges(std::move(with)), terms(std::move(under)), decisions(charges.size()) {
    application.op = op;
    application.charges = charges;
    application.decisions = decisions;
    application.terms = terms;
  }
  bool admitted() const { return told && application.status.ok() && application.applied; }

  std::vector<Charge> charges;
  std::vector<const algorithm::LeaseTerms*> terms;
  std::vector<Decision> decisions;
  Application application;
  bool told = false;
};

class LeasingAnswers : public testing::Test {
 protected:
  void On(Asked& asked) {
    store_->Apply({&asked.application, 1}, [&asked] { asked.told = true; });
    timers_.RunSoon();
  }
  Charge Hot(std::int64_t cost = 1) const { return {"hot", cost, &terms_.quota}; }
  bool ChargeHot(std::int64_t cost = 1) {
    Asked asked(Op::kCharge, {Hot(cost)}, {&terms_});
    On(asked);
    estimated_ = asked.application.estimated;
    decision_ = asked.decisions[0];
    return asked.admitted();
  }
  void Warm() {
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(ChargeHot());
    ASSERT_GT(metrics().held.load(), 0);
  }
  void AnswerHeld() {
    memory::MemoryStore memory(engine_);
    for (Held& held : std::exchange(book_.held, {})) memory.Apply(held.batch, std::move(held.done));
  }
  /// Answers all held calls except requests for permits.
  void AnswerHeldCharges() {
    memory::MemoryStore memory(engine_);
    for (Held& held : std::exchange(book_.held, {})) {
      if (held.batch[0].op == Op::kLease) {
        book_.held.push_back(std::move(held));
      } else {
        memory.Apply(held.batch, std::move(held.done));
      }
    }
  }
  /// Makes the key busy, so that permits are requested, and holds the answer.
  void AskForPermits() {
    book_.hold = true;
    for (int i = 0; i < 8; ++i) {
      Asked asked(Op::kCharge, {Hot()}, {&terms_});
      On(asked);
      AnswerHeldCharges();
      ASSERT_TRUE(asked.admitted());
    }
    ASSERT_EQ(book_.held.size(), 1U);
    book_.hold = false;
  }
  void Ring() { timers_.Ring(); }
  std::int64_t LeftInStore() { return engine_.Peek("hot", terms_.quota, 0).remaining; }
  LeaseMetrics& metrics() { return *leases_.metrics().front(); }
  std::chrono::nanoseconds term() const { return std::chrono::nanoseconds(terms_.term); }

  ManualClock clock_{Nanos{1'700'000'000} * 1'000'000'000};
  algorithm::LeaseTerms terms_ = *algorithm::TermsFor(*Quota::TokenBucket(1000, 100));
  const Quota exact_ = *Quota::FixedWindow(5, 1h);
  Engine engine_{*Quota::TokenBucket(1, 1), EngineOptions{.clock = &clock_}};
  SlowStore::Book book_;
  ManualTimers::Set timers_;
  Leases leases_{LeaseOptions{.max_keys = 10, .clock = &clock_, .seed = 1}};
  std::unique_ptr<LeasingStore> store_ =
      std::make_unique<LeasingStore>(std::make_unique<ManualTimers>(timers_), leases_,
                                     std::make_unique<SlowStore>(engine_, book_));
  bool estimated_ = false;
  Decision decision_;
};

}  // namespace weir::store::lease::test
