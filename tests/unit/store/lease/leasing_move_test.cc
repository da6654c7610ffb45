// Keys of leased policies that are being moved to another store; nothing of them is leased.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "algorithm/lease.h"
#include "store/lease/leasing_store.h"
#include "unit/store/lease/manual_timers.h"
#include "unit/store/route/routing_fixture.h"

namespace weir::store::lease {
namespace {

using namespace std::chrono_literals;
using route::kWhole;
using test::ManualTimers;

class LeasingMove : public route::RoutingStoreTest {
 protected:
  bool Check() {
    const Charge charge{"hot", 1, &terms_.quota};
    const algorithm::LeaseTerms* const terms = &terms_;
    Decision decision;
    Application application;
    application.charges = {&charge, 1};
    application.decisions = {&decision, 1};
    application.terms = {&terms, 1};
    bool told = false;
    leasing_->Apply({&application, 1}, [&told] { told = true; });
    timers_.RunSoon();
    EXPECT_TRUE(told);
    return application.status.ok() && application.applied;
  }
  /// One check in each millisecond; returns how many were admitted.
  int Admitted(int checks) {
    int admitted = 0;
    for (int i = 0; i < checks; ++i) {
      clock_.Advance(1ms);
      admitted += Check() ? 1 : 0;
    }
    return admitted;
  }

  // A lease lasts for 250 ms, so 25 of the 1,000 are held back.
  const algorithm::LeaseTerms terms_ = *algorithm::TermsFor(*Quota::TokenBucket(1000, 100));
  ManualTimers::Set timers_;
  Leases leases_{LeaseOptions{.clock = &clock_, .seed = 1}};
  std::unique_ptr<LeasingStore> leasing_ = std::make_unique<LeasingStore>(
      std::make_unique<ManualTimers>(timers_), leases_, MakeStore(routes_));
};

TEST_F(LeasingMove, EveryCheckOfABusyKeyIsDecidedByBothStores) {
  Moving(kWhole, 0);
  EXPECT_EQ(Admitted(100), 100);
  // 100 charged, 99 ms of refill since the first.
  EXPECT_EQ(LeftAt(0, "hot", terms_.quota), 975 - 100 + 9);
  EXPECT_EQ(LeftAt(1, "hot", terms_.quota), 975 - 100 + 9);
  EXPECT_EQ(leases_.Sum().local, 0U);
}

TEST_F(LeasingMove, TheLimitHoldsAndIsUsed) {
  Moving(kWhole, 0);
  // 975 at first, and a permit every 10 ms.
  const int admitted = Admitted(2000);
  EXPECT_LE(admitted, 975 + 200);
  EXPECT_GE(admitted, 975 + 190);
}

// A lease of 250 ms is requested again after 94 to 156 ms.
TEST_F(LeasingMove, PermitsAreAskedForSeldom) {
  Moving(kWhole, 0);
  Admitted(500);
  EXPECT_LE(leases_.Sum().asks, 500U / 93 + 1);
  EXPECT_GE(leases_.Sum().asks, 2U);
}

TEST_F(LeasingMove, PermitsAreLeasedAgainWhenTheKeyHasMoved) {
  Moving(kWhole, 0);
  ASSERT_EQ(Admitted(50), 50);
  Moving(kWhole, kWhole);
  EXPECT_EQ(Admitted(400), 400);
  EXPECT_GT(leases_.Sum().local, 100U);
}

}  // namespace
}  // namespace weir::store::lease
