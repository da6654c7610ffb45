#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "algorithm/charge_log.h"
#include "unit/algorithm/trace.h"

namespace weir::algorithm {
namespace {

using std::chrono::nanoseconds;

Quota InFlight(std::int64_t limit, Nanos lease) {
  return Quota::Concurrency(limit, nanoseconds(lease)).value();
}

TEST(Concurrency, GrantsTheLimitUntilPermitsComeBack) {
  Key key(InFlight(2, 100));
  const Decision first = key.Acquire(0, 1);
  EXPECT_TRUE(first.allowed());
  EXPECT_EQ(first.remaining, 1);
  EXPECT_EQ(first.reset_after, nanoseconds(100));
  ASSERT_TRUE(key.Acquire(10, 1).allowed());
  EXPECT_EQ(key.Acquire(10, 1).verdict, Verdict::kLimited);
  EXPECT_TRUE(key.Release(20, first.lease));
  EXPECT_TRUE(key.Acquire(20, 1).allowed());
}

TEST(Concurrency, PermitThatIsNotReleasedComesBackAfterItsLease) {
  Key key(InFlight(1, 100));
  ASSERT_TRUE(key.Acquire(7, 1).allowed());
  EXPECT_EQ(key.Acquire(50, 1).retry_after, nanoseconds(57));
  EXPECT_FALSE(key.Acquire(106, 1).allowed());
  EXPECT_TRUE(key.Acquire(107, 1).allowed());
}

TEST(Concurrency, LeasesOfOneMomentHaveDifferentNames) {
  Key key(InFlight(3, 100));
  EXPECT_EQ(key.Acquire(0, 1).lease, 100);
  EXPECT_EQ(key.Acquire(0, 1).lease, 101);
  EXPECT_EQ(key.Acquire(0, 1).lease, 102);
  EXPECT_TRUE(key.Release(0, 101));
  EXPECT_EQ(key.Acquire(0, 1).lease, 103);
}

TEST(Concurrency, LeaseIsReleasedOnlyOnce) {
  Key key(InFlight(3, 100));
  const std::int64_t lease = key.Acquire(0, 1).lease;
  EXPECT_TRUE(key.Release(0, lease));
  EXPECT_FALSE(key.Release(0, lease));
  // The next holder gets another id, so the late release does not free it.
  const std::int64_t next = key.Acquire(0, 1).lease;
  EXPECT_NE(next, lease);
  EXPECT_FALSE(key.Release(0, lease));
  EXPECT_EQ(key.Peek(0, 0).remaining, 2);
  EXPECT_TRUE(key.Release(0, next));
}

TEST(Concurrency, ExpiredLeaseCannotBeReleased) {
  Key key(InFlight(3, 100));
  const std::int64_t lease = key.Acquire(0, 1).lease;
  EXPECT_FALSE(key.Release(100, lease));
  EXPECT_TRUE(key.Release(99, lease));
}

TEST(Concurrency, UnknownLeaseIsNotReleased) {
  Key key(InFlight(3, 100));
  EXPECT_FALSE(key.Release(0, 100));
  key.Acquire(0, 1);
  key.Acquire(20, 1);
  EXPECT_FALSE(key.Release(0, 99));
  EXPECT_FALSE(key.Release(0, 110));
  EXPECT_FALSE(key.Release(0, 121));
  EXPECT_EQ(key.Peek(20, 0).remaining, 1);
}

TEST(Concurrency, RetryWaitsForAsManyLeasesAsTheCostNeeds) {
  Key key(InFlight(4, 100));
  key.Acquire(0, 1);
  key.Acquire(10, 2);
  key.Acquire(30, 1);
  EXPECT_EQ(key.Acquire(40, 1).retry_after, nanoseconds(60));
  EXPECT_EQ(key.Acquire(40, 3).retry_after, nanoseconds(70));
  EXPECT_EQ(key.Acquire(40, 4).retry_after, nanoseconds(90));
  ASSERT_TRUE(key.Release(40, 110));
  EXPECT_EQ(key.Acquire(40, 3).retry_after, nanoseconds(60));
}

TEST(Concurrency, ReleaseFromTheMiddleKeepsTheOthers) {
  Key key(InFlight(100, 1'000'000));
  std::vector<std::int64_t> leases;
  for (int i = 0; i < 10; ++i) leases.push_back(key.Acquire(i * i * i * 100, i + 1).lease);
  for (const std::size_t i : {4U, 5U, 0U, 9U, 8U}) {
    ASSERT_TRUE(key.Release(100'000, leases[i]));
    ASSERT_TRUE(key.Valid());
    ASSERT_FALSE(key.Release(100'000, leases[i]));
  }
  // Left: costs 2, 3, 4, 7, 8 of the leases 1, 2, 3, 6, 7.
  EXPECT_EQ(key.Peek(100'000, 0).remaining, 100 - 24);
  EXPECT_EQ(key.Peek(1'000'100, 0).remaining, 100 - 22);
  EXPECT_EQ(key.Peek(1'000'800, 0).remaining, 100 - 19);
  EXPECT_EQ(key.Peek(1'002'700, 0).remaining, 100 - 15);
  EXPECT_EQ(key.Peek(1'021'600, 0).remaining, 100 - 8);
  EXPECT_EQ(key.Peek(1'034'300, 0).remaining, 100);
}

TEST(Concurrency, ClockThatGoesBackDoesNotReviveOrShortenLeases) {
  Key key(InFlight(2, 100));
  key.Acquire(0, 1);
  key.Acquire(150, 1);                       // the first has expired
  const Decision back = key.Acquire(50, 1);  // and stays expired
  EXPECT_TRUE(back.allowed());
  EXPECT_EQ(back.lease, 251);
  EXPECT_FALSE(key.Acquire(50, 1).allowed());
  EXPECT_EQ(key.Acquire(50, 1).retry_after, nanoseconds(200));
}

TEST(Concurrency, RefundFreesNobodysPermits) {
  Key key(InFlight(6, 100));
  key.Acquire(0, 2);
  key.Acquire(10, 2);
  EXPECT_EQ(key.Refund(20, 3).remaining, 2);
  EXPECT_TRUE(key.Release(20, 110));
  EXPECT_TRUE(key.Release(20, 100));
  EXPECT_EQ(key.Peek(20, 0).remaining, 6);
}

TEST(Concurrency, NoLeaseIsEverCalledZero) {
  Key key(InFlight(3, 100));
  EXPECT_EQ(key.Acquire(-101, 1).lease, -1);
  EXPECT_EQ(key.Acquire(-101, 1).lease, 1);
  EXPECT_EQ(key.Acquire(-100, 1).lease, 2);
}

TEST(Concurrency, HoldsNoMoreLeasesThanALogHasRoomFor) {
  constexpr Nanos kLease = 1'000'000'000'000;
  const Quota quota = InFlight(kMaxLimit, kLease);
  std::vector<std::uint8_t> bytes(2 * kMaxLogEntries);
  State state{.data = bytes.data(), .capacity = static_cast<std::uint32_t>(bytes.size())};
  for (Nanos now = 0; now < kMaxLogEntries; ++now) {
    ASSERT_TRUE(Acquire(quota, state, now, 1).allowed());
  }
  const Nanos now = kMaxLogEntries;
  const Decision refused = Acquire(quota, state, now, 1);
  EXPECT_EQ(refused.verdict, Verdict::kLimited);
  EXPECT_EQ(refused.retry_after, nanoseconds(kLease - now));
  EXPECT_TRUE(Valid(Algorithm::kConcurrency, {state.data, state.size}));
  EXPECT_FALSE(Peek(quota, state, kLease - 1, 1).allowed());
  EXPECT_TRUE(Peek(quota, state, kLease, 1).allowed());
}

}  // namespace
}  // namespace weir::algorithm
