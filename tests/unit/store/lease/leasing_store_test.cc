#include "store/lease/leasing_store.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "store/memory/memory_store.h"

namespace weir::store::lease {
namespace {

using namespace std::chrono_literals;

/// Timers that a test lets ring.
class ManualTimers final : public Timers {
 public:
  using Set = std::map<Id, std::function<void()>>;
  explicit ManualTimers(Set& set) : set_(set) {}
  Id After(std::chrono::nanoseconds, std::function<void()> run) override {
    set_[++last_] = std::move(run);
    return last_;
  }
  void Cancel(Id id) override { set_.erase(id); }

 private:
  Set& set_;
  Id last_ = 0;
};

/// The memory store behind a door that counts, and that may be shut.
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
  bool immediate() const noexcept override { return true; }

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
    decision_ = decisions.front();
    return last_.status.ok() && last_.applied;
  }
  void Warm() {
    for (int i = 0; i < 12; ++i) EXPECT_TRUE(Charge());
  }
  void Ring() {
    for (const auto& [id, run] : std::exchange(timers_, {})) run();
  }
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

TEST_F(LeasingStoreTest, TheFirstChecksOfAKeyAreExact) {
  for (int i = 0; i < 7; ++i) {
    EXPECT_TRUE(Charge());
    EXPECT_FALSE(last_.estimated);
  }
  EXPECT_EQ(book_.applications[Op::kCharge], 7);
  EXPECT_EQ(book_.applications[Op::kLease], 0);
}

TEST_F(LeasingStoreTest, ABusyKeyIsDecidedWithoutTheStore) {
  Warm();
  const int asked = book_.applications[Op::kCharge];
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(Charge());
  EXPECT_EQ(book_.applications[Op::kCharge], asked);
  EXPECT_TRUE(last_.estimated);
  EXPECT_EQ(decision_.limit, terms_.quota.limit());
  EXPECT_LT(book_.applications[Op::kLease], 20);
}

TEST_F(LeasingStoreTest, PermitsEndWithTheirTerm) {
  Warm();
  ASSERT_GT(metrics().held.load(), 0);
  book_.shut = true;
  clock_.Advance(std::chrono::nanoseconds(terms_.term));
  EXPECT_FALSE(Charge()) << "the clocks may run apart by a thousandth";
}

TEST_F(LeasingStoreTest, HeldPermitsOutlastTheStoreForAWhile) {
  Warm();
  book_.shut = true;
  clock_.Advance(std::chrono::nanoseconds(terms_.term * 9 / 10));
  EXPECT_TRUE(Charge());
}

TEST_F(LeasingStoreTest, WhatIsHeldGoesBackWhenNobodyAsks) {
  Warm();
  const std::int64_t held = metrics().held.load();
  ASSERT_GT(held, 0);
  clock_.Advance(std::chrono::nanoseconds(terms_.term / 4 + 1));
  Ring();
  EXPECT_GE(book_.applications[Op::kReturn], 1);
  EXPECT_EQ(metrics().held.load(), 0);
}

TEST_F(LeasingStoreTest, DrainGivesEverythingBackAndTakesNoMore) {
  Warm();
  const std::int64_t before = Remaining();
  const std::int64_t held = metrics().held.load();
  store_->Drain();
  EXPECT_EQ(Remaining(), before + held);
  for (int i = 0; i < 50; ++i) Charge();
  EXPECT_FALSE(last_.estimated);
}

TEST_F(LeasingStoreTest, ChargesBesideAnExactOneAreAllOrNone) {
  const Quota exact = *Quota::FixedWindow(1, 1h);
  Warm();
  // More may be asked for and granted meanwhile.
  const auto unspent = [this] {
    return metrics().held.load() - static_cast<std::int64_t>(metrics().granted.value());
  };
  const std::int64_t before = unspent();
  const store::Charge hot{"hot", 1, &terms_.quota};
  const store::Charge other{"other", 1, &exact};
  EXPECT_TRUE(ChargeAll({hot, other}, {&terms_, nullptr}));
  EXPECT_EQ(unspent(), before - 1);
  EXPECT_FALSE(ChargeAll({hot, other}, {&terms_, nullptr}));
  EXPECT_EQ(unspent(), before - 1) << "nothing is spent on what was refused";
}

TEST_F(LeasingStoreTest, AnotherQuotaGivesTheOldLeaseBack) {
  Warm();
  terms_ = *algorithm::TermsFor(*Quota::TokenBucket(2000, 100));
  EXPECT_TRUE(Charge());
  EXPECT_GE(book_.applications[Op::kReturn], 1);
}

TEST_F(LeasingStoreTest, AResetForgetsWhatIsHeld) {
  Warm();
  Application reset;
  reset.op = Op::kReset;
  const store::Charge charge{"hot", 0, &terms_.quota};
  Decision decision;
  reset.charges = {&charge, 1};
  reset.decisions = {&decision, 1};
  store_->Apply({&reset, 1}, [] {});
  EXPECT_EQ(metrics().held.load(), 0);
  EXPECT_EQ(Remaining(), terms_.quota.limit());
}

TEST_F(LeasingStoreTest, ARefundPutsBackWhatThisNodeSpent) {
  Warm();
  const std::int64_t held = metrics().held.load();
  EXPECT_TRUE(Charge());
  Refund({{"hot", 1, &terms_.quota}}, {&terms_});
  EXPECT_EQ(metrics().held.load(), held);
  EXPECT_EQ(book_.applications[Op::kRefund], 0);
}

// In a window that has just begun, all that the store counts may be permits that nodes hold.
TEST_F(LeasingStoreTest, ARefundFreesNothingThatIsHeldElsewhere) {
  terms_ = *algorithm::TermsFor(*Quota::FixedWindow(100, 10s));
  ASSERT_EQ(engine_.Lease("hot", terms_.quota, 40).granted, 40) << "another node's";
  Refund({{"hot", 10, &terms_.quota}}, {&terms_});
  EXPECT_EQ(Remaining(), 60);
}

TEST_F(LeasingStoreTest, ARefundOfSeveralPoliciesGivesBackOnlyTheExactOnesInTheStore) {
  const Quota exact = *Quota::FixedWindow(10, 1h);
  ASSERT_TRUE(ChargeAll({{"hot", 5, &terms_.quota}, {"other", 5, &exact}}, {&terms_, nullptr}));
  const std::int64_t left = Remaining();
  Refund({{"hot", 5, &terms_.quota}, {"other", 5, &exact}}, {&terms_, nullptr});
  EXPECT_TRUE(last_.applied);
  EXPECT_EQ(Remaining(), left) << "a full refund of a bucket gives back what has flowed in";
  EXPECT_EQ(engine_.Peek("other", exact, 1).remaining, 10);
}

class SharingTest : public LeasingStoreTest {
 protected:
  SharingTest() { terms_ = *algorithm::RateTermsFor(*Quota::TokenBucket(8000, 8000)); }

  /// 1,000 checks a second, for `milliseconds`.
  int Busy(int milliseconds) {
    int admitted = 0;
    for (int i = 0; i < milliseconds; ++i) {
      clock_.Advance(1ms);
      admitted += Charge() ? 1 : 0;
    }
    return admitted;
  }
  std::int64_t FreeUnits() {
    return engine_.Peek("hot|%share", UnitsQuota(terms_.rate), 0).remaining;
  }
};

TEST_F(SharingTest, ABusyKeyLivesOnItsShareOfTheRate) {
  Busy(3000);
  const int before = book_.applications[Op::kLease] + book_.applications[Op::kCharge];
  EXPECT_EQ(Busy(5000), 5000);
  EXPECT_NEAR(static_cast<double>(metrics().share_asks.value()), 10, 2) << "about one a second";
  EXPECT_LT(book_.applications[Op::kLease] + book_.applications[Op::kCharge] - before, 20);
  EXPECT_GT(metrics().share_spent.value(), 6000U);
}

TEST_F(SharingTest, UnitsGoBackWhenNobodyAsksAndWhenTheNodeDrains) {
  Busy(500);
  EXPECT_LT(FreeUnits(), algorithm::kShareUnits);
  clock_.Advance(1001ms);
  Ring();
  EXPECT_EQ(FreeUnits(), algorithm::kShareUnits);
  Busy(500);
  EXPECT_LT(FreeUnits(), algorithm::kShareUnits);
  store_->Drain();
  EXPECT_EQ(FreeUnits(), algorithm::kShareUnits);
}

TEST_F(SharingTest, AShareBesideAnExactPolicyIsSpentOnlyIfBothAllow) {
  Busy(3000);
  const Quota exact = *Quota::FixedWindow(1, 1h);
  const store::Charge hot{"hot", 1, &terms_.quota};
  const store::Charge other{"other", 1, &exact};
  const std::uint64_t before = metrics().share_spent.value();
  EXPECT_TRUE(ChargeAll({hot, other}, {&terms_, nullptr}));
  EXPECT_FALSE(ChargeAll({hot, other}, {&terms_, nullptr}));
  EXPECT_EQ(metrics().share_spent.value(), before + 1);
}

TEST_F(SharingTest, AShareOutlastsTheStoreForItsTerm) {
  Busy(3000);
  book_.shut = true;
  EXPECT_GT(Busy(900), 600);
  EXPECT_LT(Busy(3000), 1500);
  EXPECT_FALSE(Charge());
}

TEST_F(LeasingStoreTest, KeysBeyondTheBoundAreChargedExactly) {
  for (int key = 0; key < 10; ++key) Charge(std::to_string(key));
  for (int i = 0; i < 50; ++i) Charge("one more");
  EXPECT_EQ(book_.applications[Op::kLease], 0);
}

}  // namespace
}  // namespace weir::store::lease
