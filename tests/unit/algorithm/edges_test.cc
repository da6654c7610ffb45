// Steps on states left by another quota, at times that do not match the state, and on bytes that
// no step wrote.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "algorithm/algorithms.h"
#include "algorithm/answer.h"
#include "algorithm/bytes.h"
#include "algorithm/lease.h"
#include "algorithm/settle.h"
#include "algorithm/state.h"
#include "algorithm/time_range.h"

namespace weir::algorithm {
namespace {

using std::chrono::nanoseconds;
using Bytes = std::vector<std::uint8_t>;

/// A state with room for what these tests charge.
class Edges : public testing::Test {
 protected:
  std::int64_t Left(const Quota& quota, Nanos now) { return Peek(quota, state_, now, 0).remaining; }
  Bytes bytes() const { return {state_.data, state_.data + state_.size}; }

  std::array<std::uint8_t, 512> memory_{};
  State state_{memory_.data(), 0, static_cast<std::uint32_t>(memory_.size())};
};

TEST_F(Edges, ACounterWithFewerBucketsOfTheSameWidthForgetsTheOldest) {
  const Quota four = *Quota::SlidingCounter(1000, nanoseconds(40), 4);
  const Quota two = *Quota::SlidingCounter(1000, nanoseconds(20), 2);
  Acquire(four, state_, 5, 200);
  Acquire(four, state_, 35, 1);
  EXPECT_EQ(Left(four, 35), 799);
  EXPECT_EQ(Left(two, 35), 999);
}

TEST_F(Edges, ACounterOfAnotherWidthCountsNothingThatIsOlderThanItsWindow) {
  const Quota wide = *Quota::SlidingCounter(1000, nanoseconds(400), 4);
  const Quota narrow = *Quota::SlidingCounter(1000, nanoseconds(20), 2);
  Acquire(wide, state_, 5, 200);  // counts as late as 99
  Acquire(wide, state_, 350, 1);  // as late as 399
  EXPECT_EQ(Left(narrow, 399), 999);
}

TEST_F(Edges, WhatWasChargedInAnotherBucketOrUnderAnotherWidthIsNotReturned) {
  const Quota quota = *Quota::SlidingCounter(1000, nanoseconds(40), 4);
  Acquire(quota, state_, 5, 200);
  const Bytes before = bytes();
  Return(quota, state_, 5, 15, 50);  // a bucket with no charges yet
  EXPECT_EQ(bytes(), before);
  Return(*Quota::SlidingCounter(1000, nanoseconds(80), 4), state_, 5, 5, 50);
  EXPECT_EQ(bytes(), before);
  Return(quota, state_, 5, 5, 50);
  EXPECT_EQ(Left(quota, 5), 850);
}

TEST_F(Edges, ALeaseOfTheFutureIsNotReturned) {
  const Quota bucket = *Quota::TokenBucket(10, 1, nanoseconds(100));
  Acquire(bucket, state_, 1000, 5);
  const Bytes before = bytes();
  Return(bucket, state_, 1000, 1001, 5);
  EXPECT_EQ(bytes(), before);
  Return(bucket, state_, 1000, 1000, 5);
  EXPECT_EQ(Left(bucket, 1000), 10);
}

TEST_F(Edges, AWindowTakesBackWhatWasChargedInIt) {
  const Quota window = *Quota::FixedWindow(10, nanoseconds(100));
  Acquire(window, state_, 1050, 5);
  Return(window, state_, 1050, 1100, 5);  // in the next one
  EXPECT_EQ(Left(window, 1050), 5);
  Return(window, state_, 1050, 999, 5);  // in the one before
  EXPECT_EQ(Left(window, 1050), 5);
  Return(window, state_, 1050, 1000, 2);
  EXPECT_EQ(Left(window, 1050), 7);
}

TEST_F(Edges, AStampThatNoChargeHasGivesNothingBack) {
  for (const Quota& quota :
       {*Quota::TokenBucket(10, 1, nanoseconds(1)), *Quota::FixedWindow(10, nanoseconds(4)),
        *Quota::SlidingLog(10, nanoseconds(4)), *Quota::SlidingCounter(10, nanoseconds(4), 4),
        *Quota::AnchoredWindow(10, nanoseconds(4))}) {
    for (const Nanos at : {kEarliest, kLatest}) {
      for (const Nanos stamp :
           {std::numeric_limits<Nanos>::min(), std::numeric_limits<Nanos>::max()}) {
        state_.size = 0;
        Reserve(quota, state_, at, 5, 1000);
        EXPECT_EQ(Settle(quota, state_, at, stamp, -5).remaining, 5) << quota.ToString();
      }
    }
  }
}

TEST_F(Edges, AChargeBeyondTheEndOfTimeIsNamedByIt) {
  Decision far;
  far.reset_after = nanoseconds::max();
  for (const Quota& quota :
       {*Quota::SlidingLog(10, nanoseconds(4)), *Quota::SlidingCounter(10, nanoseconds(4), 4)}) {
    EXPECT_EQ(ChargedAt(quota, kLatest, far), std::numeric_limits<Nanos>::max());
  }
}

TEST_F(Edges, WhatWasRefundedIsNotSettledAgain) {
  for (const Quota& quota : {*Quota::TokenBucket(10, 1, nanoseconds(100)),
                             *Quota::AnchoredWindow(10, nanoseconds(100))}) {
    state_.size = 0;
    const Decision charged = Reserve(quota, state_, 1000, 5, 1'000'000);
    const Nanos stamp = StampOf(quota, 1000, charged);
    Refund(quota, state_, 1000, 5);
    EXPECT_EQ(Settle(quota, state_, 1000, stamp, -3).remaining, 10) << quota.ToString();
    EXPECT_TRUE(Valid(quota.algorithm(), bytes())) << quota.ToString();
  }
}

// While the clock stands still, stamps advance by nanoseconds. There is a last one, and
// reservations that cannot be distinguished get nothing back.
TEST_F(Edges, NoReservationIsStampedBeyondTheEndOfTime) {
  const Quota quota = *Quota::TokenBucket(10, 1, nanoseconds(100));
  EXPECT_EQ(Reserve(quota, state_, kLatest, 1, 1000).lease, kLatest);
  EXPECT_EQ(Reserve(quota, state_, kLatest, 1, 1000).lease, kLatest + 1);
  const Nanos last = kLatest + kMaxWindow.count();
  Store(state_.data + 28, last);  // the stamp of the mark that covers both
  ASSERT_TRUE(Valid(Algorithm::kTokenBucket, bytes()));
  EXPECT_EQ(Reserve(quota, state_, kLatest, 1, 1000).lease, last);
  ASSERT_TRUE(Valid(Algorithm::kTokenBucket, bytes()));
  EXPECT_EQ(Settle(quota, state_, kLatest, last, -1).remaining, 7);
}

TEST_F(Edges, ABucketWithoutAFractionIsFreshWhenItIsFull) {
  const Quota quota = *Quota::TokenBucket(10, 1, nanoseconds(100));
  Acquire(quota, state_, 1000, 1);
  EXPECT_EQ(FreshAt(Algorithm::kTokenBucket, state_), 1100);
}

template <typename T>
void Add(Bytes& bytes, T value) {
  bytes.resize(bytes.size() + sizeof value);
  Store(bytes.data() + bytes.size() - sizeof value, value);
}

TEST(EdgeBytes, ATokenBucketsFractionIsBelowTheLargestNumber) {
  for (const std::uint32_t frac :
       {std::numeric_limits<std::uint32_t>::max() - 1, std::numeric_limits<std::uint32_t>::max()}) {
    Bytes bytes;
    Add<Nanos>(bytes, 1000);
    Add(bytes, frac);
    EXPECT_EQ(Valid(Algorithm::kTokenBucket, bytes),
              frac != std::numeric_limits<std::uint32_t>::max());
  }
}

/// A log of these entries, from 10 ns on, in the format of docs/design/state-format.md.
Bytes Log(Nanos base, Nanos newest, std::int64_t total, std::int64_t mark, std::uint32_t tail,
          std::uint32_t count, std::uint8_t given_back, const Bytes& entries) {
  Bytes bytes;
  for (const std::int64_t field : {base, newest, total, mark}) Add(bytes, field);
  for (const std::uint32_t field : {std::uint32_t{0}, tail, count}) Add(bytes, field);
  Add(bytes, given_back);
  bytes.insert(bytes.end(), entries.begin(), entries.end());
  return bytes;
}

TEST(EdgeBytes, ALogsTotalIsALimitAtMost) {
  // A cost of 2^40 is 2^40 - 2 more than 2, whose varint is FE FF FF FF FF 1F.
  const Bytes most = {0x08, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F};
  EXPECT_TRUE(Valid(Algorithm::kSlidingLog, Log(10, 10, kMaxLimit, 7, 45, 1, 0, most)));
  Bytes twice = most;
  twice.insert(twice.end(), {0x18, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F});  // 1 ns later
  EXPECT_FALSE(Valid(Algorithm::kSlidingLog, Log(10, 11, 2 * kMaxLimit, 7, 52, 2, 0, twice)));
  Bytes more = most;
  more.push_back(0x10);  // 1 ns later, a cost of 1
  EXPECT_FALSE(Valid(Algorithm::kSlidingLog, Log(10, 11, kMaxLimit + 1, 7, 52, 2, 0, more)));
  EXPECT_TRUE(Valid(Algorithm::kSlidingLog, Log(10, 11, kMaxLimit, 7, 52, 2, 1, more)))
      << "the last of them was given back";
}

TEST(EdgeBytes, AnEntryThatWasGivenBackHasNoCost) {
  EXPECT_FALSE(Valid(Algorithm::kSlidingLog, Log(10, 10, 3, 7, 45, 1, 1, {0x08, 0x02})));
}

TEST(EdgeBytes, TimesOfALogAreThoseOfItsAlgorithm) {
  // A lease may end after the last possible moment, but must not be charged after it.
  const Bytes one = {0x00};
  const Nanos late = kLatest + 10;
  EXPECT_FALSE(Valid(Algorithm::kSlidingLog, Log(late, late, 1, 7, 45, 1, 0, one)));
  EXPECT_TRUE(Valid(Algorithm::kConcurrency, Log(late, late, 1, 7, 45, 1, 0, one)));
  EXPECT_FALSE(Valid(Algorithm::kConcurrency,
                     Log(10, 10, 1, std::numeric_limits<Nanos>::min(), 45, 1, 0, one)));
}

TEST(EdgeBytes, ACountersBytesAreWhole) {
  EXPECT_FALSE(Valid(Algorithm::kSlidingCounter, Bytes(5)));
  const auto counter = [](const Bytes& counts) {
    Bytes bytes;
    Add<std::int64_t>(bytes, 3);
    Add<std::int64_t>(bytes, 10);
    Add<std::uint16_t>(bytes, 2);
    bytes.insert(bytes.end(), counts.begin(), counts.end());
    return Valid(Algorithm::kSlidingCounter, bytes);
  };
  EXPECT_TRUE(counter({1}));
  Bytes long_number(9, 0x80);
  long_number.push_back(0x02);  // bit 64
  EXPECT_FALSE(counter(long_number));
  long_number.back() = 0x81;  // continued
  long_number.push_back(0x01);
  EXPECT_FALSE(counter(long_number));
}

TEST(EdgeNumbers, TimesUntilAMomentThatHasPassedAreNothing) {
  EXPECT_EQ(Until(5, 9), nanoseconds(0));
  EXPECT_EQ(Until(9, 5), nanoseconds(4));
  EXPECT_EQ(Until(std::numeric_limits<Nanos>::max(), std::numeric_limits<Nanos>::min()),
            nanoseconds::max());
}

TEST(EdgeNumbers, AnAnchoredWindowIsCheckedAsAFixedOne) {
  EXPECT_FALSE(Quota::AnchoredWindow(0, nanoseconds(1)).ok());
  EXPECT_FALSE(Quota::AnchoredWindow(1, nanoseconds(0)).ok());
}

TEST(EdgeNumbers, AlgorithmsAreListedForPeople) {
  EXPECT_EQ(Listed(&Descriptor::name),
            "token_bucket, fixed_window, sliding_log, sliding_counter, concurrency or "
            "anchored_window");
}

}  // namespace
}  // namespace weir::algorithm
