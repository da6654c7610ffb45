// The store of a region: permits that it has leased from the home store and leases on to nodes.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "unit/store/lease/leasing_fixture.h"

namespace weir::store::lease {
namespace {

using namespace std::chrono_literals;

class RegionTest : public LeasingStoreTest {
 protected:
  RegionTest() { Restart(1); }

  /// Restarts the process without any permits.
  void Restart(std::uint32_t seed) {
    region_leases_ = std::make_unique<Leases>(
        LeaseOptions{.max_keys = 2, .clock = &clock_, .seed = seed, .lends = true});
    store_ =
        std::make_unique<LeasingStore>(std::make_unique<ManualTimers>(timers_), *region_leases_,
                                       std::make_unique<CountingStore>(engine_, book_));
  }

  /// One request of a node.
  bool Ask(Op op, std::int64_t cost, std::int64_t lease = 0, std::string_view key = "hot") {
    const store::Charge charge{key, cost, &node_.quota};
    last_ = {};
    last_.op = op;
    last_.lease = lease;
    last_.charges = {&charge, 1};
    last_.decisions = {&decision_, 1};
    last_.region = {node_.region, node_.term};
    store_->Apply({&last_, 1}, [] {});
    timers_.RunSoon();
    last_.charges = {};
    return last_.status.ok() && last_.applied;
  }
  std::int64_t Leased(std::int64_t want, std::string_view key = "hot") {
    Ask(Op::kLease, want, 0, key);
    return last_.granted;
  }
  /// Nodes have made requests for a while.
  void Begin() {
    Leased(100);
    ASSERT_GT(region().held.load(), 0);
  }
  LeaseMetrics& region() { return *region_leases_->metrics().front(); }
  std::int64_t Home() { return engine_.Peek("hot", node_.quota, 1).remaining; }

  // B = 1000, r = 10/s: it fills in 100 s, so T is the requested 2 s and a node's term
  // the longest possible. Of the capacity, 20 are held back.
  algorithm::LeaseTerms node_ = *algorithm::RegionTermsFor(*Quota::TokenBucket(1000, 10), 2s);
  std::unique_ptr<Leases> region_leases_;
};

TEST_F(RegionTest, TermsAreOfTheRegionAndOfTheNode) {
  EXPECT_EQ(node_.region, std::chrono::nanoseconds(2s).count());
  EXPECT_EQ(node_.term, std::chrono::nanoseconds(250ms).count());
  EXPECT_EQ(node_.quota, *Quota::TokenBucket(980, 10));
  // A twentieth of 8 s, and a quarter of that.
  const auto shorter = *algorithm::RegionTermsFor(*Quota::SlidingLog(100, 8s), 2s);
  EXPECT_EQ(shorter.region, std::chrono::nanoseconds(400ms).count());
  EXPECT_EQ(shorter.term, std::chrono::nanoseconds(100ms).count());
  EXPECT_EQ(shorter.quota, *Quota::SlidingLog(100, 8400ms));
  // A twentieth of 600 ms is 30 ms, a quarter of which is too short: nodes use the home store.
  const Quota brief = *Quota::FixedWindow(100, 600ms);
  EXPECT_EQ(*algorithm::RegionTermsFor(brief, 2s), *algorithm::TermsFor(brief));
  const Quota concurrent = *Quota::Concurrency(100, 30s);
  EXPECT_EQ(*algorithm::RegionTermsFor(concurrent, 2s), *algorithm::TermsFor(concurrent));
}

TEST_F(RegionTest, NodesLeaseWithoutTheHomeStore) {
  Begin();
  const int asked = book_.applications[Op::kLease];
  book_.shut = true;
  const std::int64_t held = region().held.load();
  EXPECT_EQ(Leased(8), 8);
  EXPECT_EQ(region().held.load(), held - 8);
  EXPECT_LE(book_.applications[Op::kLease], asked + 1);
}

TEST_F(RegionTest, WhatIsNotHeldYetIsNotARefusal) {
  book_.shut = true;
  EXPECT_EQ(Leased(8), 0);
  EXPECT_TRUE(last_.status.ok());
  // The node's next check is not denied because of it, but goes to the home store.
  EXPECT_LE(decision_.retry_after, 1ns);
}

TEST_F(RegionTest, PermitsAreLentOnlyIfTheyOutlastTheNodesTerm) {
  Begin();
  book_.shut = true;
  ASSERT_EQ(Leased(1), 1);
  // Of the 2 s, a node may spend for 250 ms, and both clocks may be inaccurate.
  clock_.Advance(1740ms);
  EXPECT_EQ(Leased(1), 1);
  clock_.Advance(15ms);
  EXPECT_EQ(Leased(1), 0);
  EXPECT_TRUE(Ask(Op::kCharge, 1)) << "spent here and now, it still lasts";
}

TEST_F(RegionTest, AGrantIsNamedAndComesBackToItself) {
  Begin();
  const std::int64_t held = region().held.load();
  ASSERT_EQ(Leased(10), 10);
  const Nanos name = last_.at;
  EXPECT_GT(name, 0);
  EXPECT_TRUE(Ask(Op::kReturn, 4, name));
  EXPECT_EQ(region().held.load(), held - 6);
  EXPECT_TRUE(Ask(Op::kReturn, 4, name + 1)) << "of no grant that is known";
  EXPECT_EQ(region().held.load(), held - 6);
  EXPECT_TRUE(Ask(Op::kReturn, -100, name));
  EXPECT_EQ(region().held.load(), held - 6);
}

// Nodes may still spend it: had the client's check been the only one, there would be nothing to
// refund.
TEST_F(RegionTest, AClientsRefundFreesNothingThatNodesWereLent) {
  Begin();
  const algorithm::LeaseTerms own = algorithm::AtRegion(node_);
  ASSERT_EQ(Leased(20), 20);
  const std::int64_t held = region().held.load();
  EXPECT_TRUE(Refund({{"hot", 20, &own.quota}}, {&own}));
  EXPECT_EQ(region().held.load(), held);
  ASSERT_TRUE(ChargeAll({{"hot", 3, &own.quota}}, {&own}));
  EXPECT_EQ(region().held.load(), held - 3);
  EXPECT_TRUE(Refund({{"hot", 20, &own.quota}}, {&own}));
  EXPECT_EQ(region().held.load(), held) << "what its own clients have spent";
}

TEST_F(RegionTest, NoMoreComesBackThanWasLent) {
  Begin();
  const algorithm::LeaseTerms own = algorithm::AtRegion(node_);
  ASSERT_EQ(Leased(10), 10);
  const Nanos name = last_.at;
  ASSERT_TRUE(ChargeAll({{"hot", 5, &own.quota}}, {&own}));
  const std::int64_t held = region().held.load();
  EXPECT_TRUE(Ask(Op::kReturn, 15, name));
  EXPECT_EQ(region().held.load(), held + 10);
}

TEST_F(RegionTest, WhatWasLentBeforeARestartDoesNotComeBackAfterIt) {
  Begin();
  ASSERT_EQ(Leased(10), 10);
  const Nanos name = last_.at;
  Restart(2);
  Begin();
  ASSERT_EQ(Leased(10), 10);
  ASSERT_NE(last_.at, name);
  const std::int64_t held = region().held.load();
  EXPECT_TRUE(Ask(Op::kReturn, 10, name));
  EXPECT_EQ(region().held.load(), held);
}

TEST_F(RegionTest, FewChecksOfAKeyAreTheHomeStores) {
  for (int i = 0; i < 7; ++i) {
    EXPECT_TRUE(Ask(Op::kCharge, 1));
    EXPECT_FALSE(last_.estimated);
  }
  EXPECT_EQ(book_.applications[Op::kCharge], 7);
  EXPECT_EQ(Home(), 973);
}

TEST_F(RegionTest, ManyChecksOfAKeyAreDecidedHere) {
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(Ask(Op::kCharge, 1));
  EXPECT_TRUE(last_.estimated);
  EXPECT_LT(book_.applications[Op::kCharge], 12);
}

TEST_F(RegionTest, AnExhaustedLimitIsRefusedForAWhile) {
  ASSERT_TRUE(engine_.TryAcquire("hot", node_.quota, 980).allowed());
  EXPECT_EQ(Leased(8), 0);
  EXPECT_EQ(Leased(8), 0);
  EXPECT_EQ(decision_.verdict, Verdict::kLimited);
  // One permit is refilled after 100 ms.
  EXPECT_GT(decision_.retry_after, 0ns);
  EXPECT_LE(decision_.retry_after, 100ms);
  EXPECT_FALSE(Ask(Op::kCharge, 1));
  EXPECT_TRUE(last_.status.ok());
}

TEST_F(RegionTest, KeysBeyondTheBoundAreLentNothing) {
  Leased(1, "a");
  Leased(1, "b");
  EXPECT_EQ(Leased(1, "c"), 0);
  ASSERT_FALSE(last_.status.ok());
  EXPECT_EQ(FaultOf(last_.status.error().code), Fault::kLoad);
  EXPECT_TRUE(Ask(Op::kCharge, 1, 0, "c")) << "the home store decides";
}

TEST_F(RegionTest, ADrainedRegionLendsNothing) {
  Begin();
  store_->Drain();
  EXPECT_EQ(Home(), 980 - static_cast<std::int64_t>(region().lent.value()));
  EXPECT_EQ(Leased(1), 0);
  EXPECT_TRUE(Ask(Op::kCharge, 1));
}

TEST_F(RegionTest, AWindowThatEndsSoonIsNotLent) {
  node_ = *algorithm::RegionTermsFor(*Quota::FixedWindow(1000, 40s), 2s);
  // kStart is a multiple of 20 s: the window ends 40 s or 20 s later.
  const auto left = engine_.Peek("hot", node_.quota, 1).reset_after;
  clock_.Advance((left.count() == 0 ? 40s : left) - 200ms);
  Leased(100);
  EXPECT_EQ(Leased(1), 0) << "a node would spend it in the next window";
}

// A node of the region, whose store this is.
TEST_F(RegionTest, ANodeSaysWhatItsRegionMayDo) {
  class Recorder final : public Store {
   public:
    explicit Recorder(std::vector<RegionTerms>& seen) : seen_(seen) {}
    void Apply(std::span<Application> batch, Done done) override {
      for (Application& application : batch) {
        seen_.push_back(application.region);
        application.applied = true;
      }
      done();
    }

   private:
    std::vector<RegionTerms>& seen_;
  };
  std::vector<RegionTerms> seen;
  LeasingStore node(std::make_unique<ManualTimers>(timers_), leases_,
                    std::make_unique<Recorder>(seen));
  const algorithm::LeaseTerms* const terms[] = {&node_, nullptr};
  const store::Charge charges[] = {{"hot", 1, &node_.quota}, {"cold", 1, &node_.quota}};
  Decision decisions[2];
  Application one;
  one.charges = {charges, 1};
  one.terms = {terms, 1};
  one.decisions = {decisions, 1};
  node.Apply({&one, 1}, [] {});
  Application two;
  two.charges = charges;
  two.terms = terms;
  two.decisions = decisions;
  node.Apply({&two, 1}, [] {});
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0], (RegionTerms{node_.region, node_.term}));
  EXPECT_EQ(seen[1], RegionTerms()) << "all or none is the home store's";
}

}  // namespace
}  // namespace weir::store::lease
