#include "store/route/routing_store.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unit/store/route/routing_fixture.h"

namespace weir::store::route {
namespace {

using namespace std::chrono_literals;

TEST_F(RoutingStoreTest, EachPolicyIsChargedInItsStore) {
  EXPECT_TRUE(Charge1("api/hot|user:1", minute_, 3));
  EXPECT_TRUE(Charge1("api/cold|user:1", minute_, 4));
  EXPECT_EQ(LeftAt(1, "api/hot|user:1", minute_), 7);
  EXPECT_EQ(LeftAt(0, "api/hot|user:1", minute_), 10);
  EXPECT_EQ(LeftAt(0, "api/cold|user:1", minute_), 6);
  EXPECT_EQ(counts_.split, 0U);
}

TEST_F(RoutingStoreTest, ABatchForSeveralStoresIsAnsweredAsOne) {
  const std::array charges{Charge{"api/hot|a", 1, &minute_}, Charge{"api/cold|a", 2, &minute_},
                           Charge{"api/hot|a", 10, &minute_}};
  std::array<Decision, 3> decisions;
  std::array<Application, 3> batch;
  for (std::size_t i = 0; i < 3; ++i) {
    batch[i].charges = std::span(charges).subspan(i, 1);
    batch[i].decisions = std::span(decisions).subspan(i, 1);
  }
  int answers = 0;
  store_->Apply(batch, [&answers] { ++answers; });
  EXPECT_EQ(answers, 1);
  EXPECT_TRUE(batch[0].applied);
  EXPECT_TRUE(batch[1].applied);
  EXPECT_FALSE(batch[2].applied);  // after the first: in order if they share keys
  EXPECT_EQ(decisions[0].remaining, 9);
  EXPECT_EQ(decisions[1].remaining, 8);
}

TEST_F(RoutingStoreTest, AllOrNothingHoldsOverSeveralStores) {
  const std::vector<Charge> both{{"api/hot|a", 1, &minute_}, {"api/cold|a", 6, &minute_}};
  EXPECT_TRUE(Apply(Op::kCharge, both));
  EXPECT_EQ(LeftAt(0, "api/cold|a", minute_), 4);
  EXPECT_EQ(LeftAt(1, "api/hot|a", minute_), 9);

  EXPECT_FALSE(Apply(Op::kCharge, both));
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(decisions_[1].verdict, Verdict::kLimited);
  EXPECT_EQ(decisions_[0].verdict, Verdict::kAllowed);
  EXPECT_EQ(decisions_[0].limit, 10);
  EXPECT_EQ(LeftAt(0, "api/cold|a", minute_), 4);
  EXPECT_EQ(LeftAt(1, "api/hot|a", minute_), 9);
}

TEST_F(RoutingStoreTest, WhatALaterStoreRefusesIsGivenBackInTheEarlier) {
  const std::vector<Charge> all{{"api/cold|a", 2, &minute_},
                                {"api/cold|f", 1, &flight_},
                                {"api/hot|a", 20, &minute_}};  // never fits
  EXPECT_FALSE(Apply(Op::kCharge, all));
  EXPECT_EQ(decisions_[2].verdict, Verdict::kNever);
  EXPECT_EQ(LeftAt(0, "api/cold|a", minute_), 10);
  EXPECT_EQ(LeftAt(0, "api/cold|f", flight_), 2);
  EXPECT_EQ(counts_.undone, 1U);
  EXPECT_EQ(counts_.not_undone, 0U);
}

TEST_F(RoutingStoreTest, AStoreThatFailsFailsTheCheckAndNothingStaysCharged) {
  doors_[1].shut = true;
  EXPECT_FALSE(Apply(Op::kCharge, {{"api/cold|a", 2, &minute_}, {"api/hot|a", 1, &minute_}}));
  EXPECT_EQ(status_.error().code, Code::kUnavailable);
  EXPECT_EQ(LeftAt(0, "api/cold|a", minute_), 10);
}

TEST_F(RoutingStoreTest, RefundsResetsAndPeeksReachEveryStore) {
  const std::vector<Charge> both{{"api/hot|a", 5, &minute_}, {"api/cold|a", 5, &minute_}};
  EXPECT_TRUE(Apply(Op::kCharge, both));
  EXPECT_TRUE(Apply(Op::kRefund, {{"api/hot|a", 2, &minute_}, {"api/cold|a", 1, &minute_}}));
  EXPECT_EQ(decisions_[0].remaining, 7);
  EXPECT_EQ(decisions_[1].remaining, 6);
  EXPECT_TRUE(Apply(Op::kPeek, both));
  EXPECT_EQ(decisions_[0].remaining, 7);
  EXPECT_TRUE(Apply(Op::kReset, both));
  EXPECT_EQ(LeftAt(0, "api/cold|a", minute_), 10);
  EXPECT_EQ(LeftAt(1, "api/hot|a", minute_), 10);
}

// A client retries a failed refund.
TEST_F(RoutingStoreTest, ARefundThatIsRepeatedReturnsNothingTwice) {
  const std::vector<Charge> both{{"api/cold|a", 3, &minute_}, {"api/hot|a", 3, &minute_}};
  EXPECT_TRUE(Apply(Op::kCharge, both));
  EXPECT_TRUE(Apply(Op::kCharge, both));
  doors_[1].shut = true;
  for (bool made = false, first = true; !made; first = false) {
    made = Apply(Op::kRefund, both);
    if (!first) doors_[1].shut = false;
  }
  EXPECT_EQ(LeftAt(0, "api/cold|a", minute_), 7) << "three of six are back";
  EXPECT_LE(LeftAt(1, "api/hot|a", minute_), 7);
  doors_[0].shut = doors_[1].shut = true;
  EXPECT_FALSE(Apply(Op::kRefund, both)) << "nothing was returned";
}

TEST_F(RoutingStoreTest, AReservationOverSeveralServersIsRefused) {
  const Quota record = *Quota::Concurrency(1, 1min);
  EXPECT_FALSE(Apply(Op::kCharge, {{"api/hot|a|%reserved:00", 1, &record},
                                   {"api/hot|a", 1, &minute_},
                                   {"api/cold|a", 1, &minute_}}));
  EXPECT_EQ(FaultOf(status_.error().code), Fault::kQuestion);
  EXPECT_EQ(LeftAt(1, "api/hot|a", minute_), 10);
  EXPECT_TRUE(
      Apply(Op::kCharge, {{"api/hot|a|%reserved:00", 1, &record}, {"api/hot|a", 1, &minute_}}));
}

TEST_F(RoutingStoreTest, AKeyOnTheMoveIsChargedInBothStores) {
  Moving(kWhole, 0);
  EXPECT_TRUE(Charge1("api/a|x", minute_, 4));
  EXPECT_EQ(decisions_[0].remaining, 6);
  EXPECT_EQ(LeftAt(0, "api/a|x", minute_), 6);
  EXPECT_EQ(LeftAt(1, "api/a|x", minute_), 6);
  EXPECT_FALSE(Charge1("api/a|x", minute_, 7));
  EXPECT_EQ(LeftAt(0, "api/a|x", minute_), 6);
  EXPECT_EQ(LeftAt(1, "api/a|x", minute_), 6);
  EXPECT_TRUE(Apply(Op::kRefund, {{"api/a|x", 1, &minute_}}));
  EXPECT_EQ(LeftAt(0, "api/a|x", minute_), 7);
  EXPECT_EQ(LeftAt(1, "api/a|x", minute_), 7);
}

TEST_F(RoutingStoreTest, WhatWasUsedBeforeTheMoveIsCarriedOverWithTheNextCharge) {
  const Quota window = *Quota::FixedWindow(10, 1min);
  const Quota counter = *Quota::SlidingCounter(10, 1min, 6);
  const Quota anchored = *Quota::AnchoredWindow(10, 1min);
  for (const Quota* quota : {&minute_, &bucket_, &window, &counter, &anchored}) {
    SCOPED_TRACE(quota->ToString());
    const std::string key = "api/a|" + quota->ToString();
    Moving(0, 0);
    EXPECT_TRUE(Charge1(key, *quota, 7));
    clock_.Advance(500ms);
    Moving(kWhole, 0);
    EXPECT_TRUE(Charge1(key, *quota));
    EXPECT_LE(LeftAt(1, key, *quota), LeftAt(0, key, *quota));
    Moving(kWhole, kWhole);
    EXPECT_FALSE(Charge1(key, *quota, 3));  // 8 of 10 are used
    EXPECT_TRUE(Charge1(key, *quota, 2));
  }
  EXPECT_EQ(counts_.levelled, 5U);
}

TEST_F(RoutingStoreTest, OneOfManyWhoSeeTheDifferenceMakesUpForIt) {
  EXPECT_TRUE(engines_[0].TryAcquire("api/a|x", minute_, 3).allowed());
  Moving(kWhole, 0);
  // Two nodes charge concurrently: both stores answer both before either levels.
  auto other = MakeStore(routes_);
  doors_[1].slow = true;
  const Charge charge{"api/a|x", 1, &minute_};
  std::array<Decision, 2> decisions;
  std::array<Application, 2> asked;
  int answers = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    asked[i].charges = {&charge, 1};
    asked[i].decisions = std::span(decisions).subspan(i, 1);
    (i == 0 ? *store_ : *other).Apply({&asked[i], 1}, [&answers] { ++answers; });
  }
  while (!doors_[1].kept.empty()) {
    for (auto& answer : std::exchange(doors_[1].kept, {})) answer();
  }
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(counts_.levelled, 1U);
  EXPECT_EQ(LeftAt(0, "api/a|x", minute_), 5);
  // The first of them saw the other's charge only in the old store: at most the charges under way
  // are counted in excess, and never too little.
  EXPECT_LE(LeftAt(1, "api/a|x", minute_), 5);
  EXPECT_GE(LeftAt(1, "api/a|x", minute_), 4);
}

TEST_F(RoutingStoreTest, AChargeThatOvertakesAnotherHidesNoDifference) {
  EXPECT_TRUE(engines_[0].TryAcquire("api/a|x", minute_, 3).allowed());
  Moving(kWhole, 0);
  // Both are charged in the old store in this order, and in the new one, as well as leveled, in
  // the other: the new store's answer to the first includes the second, which it has not seen.
  auto other = MakeStore(routes_);
  doors_[1].slow = true;
  const Charge charge{"api/a|x", 1, &minute_};
  std::array<Decision, 2> decisions;
  std::array<Application, 2> asked;
  int answers = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    asked[i].charges = {&charge, 1};
    asked[i].decisions = std::span(decisions).subspan(i, 1);
    (i == 0 ? *store_ : *other).Apply({&asked[i], 1}, [&answers] { ++answers; });
  }
  while (!doors_[1].kept.empty()) {
    std::vector<std::function<void()>> kept = std::exchange(doors_[1].kept, {});
    for (auto answer = kept.rbegin(); answer != kept.rend(); ++answer) (*answer)();
  }
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(LeftAt(0, "api/a|x", minute_), 5);
  EXPECT_LE(LeftAt(1, "api/a|x", minute_), 5) << "the new store knows less than the old one";
}

TEST_F(RoutingStoreTest, NodesThatHaveNotHeardOfTheMoveCountBesideThoseThatHave) {
  // Before, and in both: the old store sees every charge. In both, and after: the new one does.
  std::optional<Routes> elsewhere;
  const auto other = MakeStore(elsewhere);
  const auto run = [&](std::uint32_t done_here, std::uint32_t share_there, std::uint32_t done_there,
                       std::string_view key) {
    Moving(kWhole, done_here);
    elsewhere.emplace(
        Routes::Options{.stores = {{0}, {1}}, .move = Move{0, 1, share_there, done_there, {}}});
    int allowed = 0;
    for (int i = 0; i < 20; ++i) {
      allowed += Apply(Op::kCharge, {{key, 1, &minute_}}) ? 1 : 0;
      allowed += Apply(Op::kCharge, {{key, 1, &minute_}}, 0, other.get()) ? 1 : 0;
    }
    return allowed;
  };
  EXPECT_EQ(run(0, 0, 0, "api/a|x"), 10);
  EXPECT_EQ(run(0, kWhole, kWhole, "api/a|y"), 10);
}

TEST_F(RoutingStoreTest, ANewStoreThatIsAwayDoesNotStopTheOldOne) {
  Moving(kWhole, 0);
  doors_[1].shut = true;
  EXPECT_TRUE(Charge1("api/a|x", minute_, 4));
  EXPECT_EQ(counts_.missed, 1U);
  doors_[1].shut = false;
  EXPECT_TRUE(Charge1("api/a|x", minute_, 1));  // makes up for the missed one
  EXPECT_EQ(LeftAt(1, "api/a|x", minute_), 5);
}

TEST_F(RoutingStoreTest, AnOldStoreThatIsAwayIsAFailure) {
  Moving(kWhole, 0);
  doors_[0].shut = true;
  EXPECT_FALSE(Charge1("api/a|x", minute_));
  EXPECT_EQ(status_.error().code, Code::kUnavailable);
}

TEST_F(RoutingStoreTest, PermitsInFlightStayWithTheOldStoreUntilTheKeyHasMoved) {
  Moving(kWhole, 0);
  EXPECT_TRUE(Charge1("api/a|f", flight_));
  const std::int64_t lease = decisions_[0].lease;
  EXPECT_EQ(LeftAt(0, "api/a|f", flight_), 1);
  EXPECT_EQ(LeftAt(1, "api/a|f", flight_), 2);
  EXPECT_TRUE(Apply(Op::kRelease, {{"api/a|f", 1, &flight_}}, lease));
  EXPECT_EQ(LeftAt(0, "api/a|f", flight_), 2);
}

TEST_F(RoutingStoreTest, WhatAReservationCostMoreCountsInBothStores) {
  const Quota record = *Quota::Concurrency(1, 1min);
  const std::string name = "api/a|x|%reserved:00";
  Moving(kWhole, 0);
  ASSERT_TRUE(Apply(Op::kCharge, {{name, 1, &record}, {"api/a|x", 2, &minute_}}));
  const Nanos lease = decisions_[0].lease;
  const auto settle = [&](std::int64_t change) {
    const std::array charges{Charge{name, 1, &record}, Charge{"api/a|x", change, &minute_}};
    const std::array<Nanos, 2> stamps{0, kStart};
    std::array<Decision, 2> decisions;
    Application settled;
    settled.op = Op::kSettle;
    settled.lease = lease;
    settled.charges = charges;
    settled.stamps = stamps;
    settled.decisions = decisions;
    int answers = 0;
    store_->Apply({&settled, 1}, [&answers] { ++answers; });
    EXPECT_EQ(answers, 1);
    EXPECT_TRUE(settled.status.ok());
    EXPECT_EQ(decisions[1].remaining, 3);  // also after the second, which changes nothing
    return settled.applied;
  };
  EXPECT_TRUE(settle(5));
  EXPECT_FALSE(settle(5));
  EXPECT_EQ(LeftAt(0, "api/a|x", minute_), 3);
  Moving(kWhole, kWhole);
  EXPECT_FALSE(Charge1("api/a|x", minute_, 4));  // 7 of 10 are used
  EXPECT_TRUE(Charge1("api/a|x", minute_, 3));
}

TEST_F(RoutingStoreTest, NothingIsLeasedWhileAKeyMoves) {
  Moving(kWhole, 0);
  EXPECT_FALSE(Apply(Op::kLease, {{"api/a|x", 5, &minute_}}));
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(granted_, 0);
  EXPECT_EQ(LeftAt(0, "api/a|x", minute_), 10);
  Moving(kWhole, kWhole);
  EXPECT_TRUE(Apply(Op::kLease, {{"api/a|x", 5, &minute_}}));
  EXPECT_EQ(granted_, 5);
}

TEST_F(RoutingStoreTest, WhatIsUnderWayWhenTheStoreGoesIsAnswered) {
  Moving(kWhole, 0);
  doors_[0].slow = true;
  const Charge charge{"api/a|x", 1, &minute_};
  Decision decision;
  Application application;
  application.charges = {&charge, 1};
  application.decisions = {&decision, 1};
  int answers = 0;
  store_->Apply({&application, 1}, [&answers] { ++answers; });
  EXPECT_EQ(answers, 0);
  store_.reset();
  EXPECT_EQ(answers, 1);
}

}  // namespace
}  // namespace weir::store::route
