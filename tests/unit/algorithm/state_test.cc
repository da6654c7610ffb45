#include "algorithm/state.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <vector>

#include "algorithm/bytes.h"
#include "unit/algorithm/trace.h"

namespace weir::algorithm {
namespace {

using std::chrono::nanoseconds;
using Bytes = std::vector<std::uint8_t>;

constexpr Algorithm kAll[] = {Algorithm::kTokenBucket, Algorithm::kFixedWindow,
                              Algorithm::kSlidingLog,  Algorithm::kSlidingCounter,
                              Algorithm::kConcurrency, Algorithm::kAnchoredWindow};

template <typename T>
void Append(Bytes& bytes, T value) {
  bytes.resize(bytes.size() + sizeof value);
  Store(bytes.data() + bytes.size() - sizeof value, value);
}

/// The bytes of a log, field by field, in the format of docs/design/state-format.md.
struct LogBytes {
  std::int64_t base = 10;
  std::int64_t newest = 30;
  std::int64_t total = 5;
  std::int64_t mark = 7;
  std::uint32_t head = 0;
  std::uint32_t tail = 47;
  std::uint32_t count = 2;
  std::uint8_t given_back = 0;
  // Entries: 0 ns after base, cost 4 (k = 0, a cost follows: 2); 20 ns later, cost 1 (k = 1).
  Bytes entries = {0x08, 0x02, 0x41, 0x01};

  Bytes Build() const {
    Bytes bytes;
    for (const std::int64_t field : {base, newest, total, mark}) Append(bytes, field);
    for (const std::uint32_t field : {head, tail, count}) Append(bytes, field);
    Append(bytes, given_back);
    bytes.insert(bytes.end(), entries.begin(), entries.end());
    return bytes;
  }
};

bool ValidLog(const LogBytes& log) { return Valid(Algorithm::kSlidingLog, log.Build()); }

TEST(State, EmptyIsAFreshKey) {
  for (const Algorithm algorithm : kAll) {
    EXPECT_TRUE(Valid(algorithm, {}));
    EXPECT_EQ(FreshAt(algorithm, State{}), std::numeric_limits<Nanos>::min());
  }
}

TEST(State, TokenBucketIsTwelveBytes) {
  Key key(Quota::TokenBucket(10, 3, nanoseconds(100)).value());
  key.Acquire(1000, 1);  // full at 1000 + 33 1/3
  Bytes expected;
  Append<std::int64_t>(expected, 1033);
  Append<std::uint32_t>(expected, 1);
  EXPECT_EQ(key.Bytes(), expected);
  EXPECT_EQ(key.FreshAt(), 1034);
}

TEST(State, FixedWindowIsItsEndAndCount) {
  Key key(Quota::FixedWindow(10, nanoseconds(100)).value());
  key.Acquire(1050, 3);
  Bytes expected;
  Append<std::int64_t>(expected, 1100);
  Append<std::int64_t>(expected, 3);
  EXPECT_EQ(key.Bytes(), expected);
  EXPECT_EQ(key.FreshAt(), 1100);
}

TEST(State, SlidingLogIsAsDocumented) {
  Key key(Quota::SlidingLog(10, nanoseconds(7)).value());
  LogBytes expected;
  key.Acquire(expected.base, 4);
  expected.newest = 12;
  key.Acquire(expected.newest, 1);
  expected.entries = {0x08, 0x02, 0x20};
  EXPECT_EQ(key.Bytes(), expected.Build());
  EXPECT_EQ(key.FreshAt(), 19);
}

TEST(State, ConcurrencyIsALogOfExpiries) {
  Key key(Quota::Concurrency(10, nanoseconds(100)).value());
  key.Acquire(10, 4);
  key.Acquire(30, 1);
  const LogBytes expected{.base = 110, .newest = 130, .mark = 30};
  EXPECT_EQ(key.Bytes(), expected.Build());
  EXPECT_EQ(key.FreshAt(), 130);
}

TEST(State, SlidingCounterIsItsCountsNewestFirst) {
  Key key(Quota::SlidingCounter(1000, nanoseconds(40), 4).value());
  key.Acquire(5, 200);
  key.Acquire(35, 1);
  Bytes expected;
  Append<std::int64_t>(expected, 3);
  Append<std::int64_t>(expected, 10);
  Append<std::uint16_t>(expected, 4);
  for (const int byte : {1, 0, 0, 0xC8, 0x01}) expected.push_back(static_cast<std::uint8_t>(byte));
  EXPECT_EQ(key.Bytes(), expected);
  EXPECT_EQ(key.FreshAt(), 80);
}

TEST(State, EveryTruncationOfAStateIsRefused) {
  const Quota quotas[] = {Quota::TokenBucket(1000, 3).value(),
                          Quota::FixedWindow(1000, nanoseconds(40)).value(),
                          Quota::SlidingLog(1000, nanoseconds(40)).value(),
                          Quota::Concurrency(1000, nanoseconds(40)).value(),
                          Quota::AnchoredWindow(1000, nanoseconds(40)).value()};
  for (const Quota& quota : quotas) {
    Key key(quota);
    key.Acquire(5, 200);
    key.Acquire(35, 7);
    const Bytes bytes = key.Bytes();
    ASSERT_TRUE(Valid(quota.algorithm(), bytes));
    for (std::size_t size = 1; size < bytes.size(); ++size) {
      EXPECT_FALSE(Valid(quota.algorithm(),
                         Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))))
          << quota.ToString() << " " << size;
    }
    Bytes longer = bytes;
    longer.push_back(0);
    EXPECT_FALSE(Valid(quota.algorithm(), longer)) << quota.ToString();
  }
}

TEST(State, LogWithAFieldThatDoesNotFitIsRefused) {
  ASSERT_TRUE(ValidLog({}));
  EXPECT_FALSE(ValidLog({.base = 11}));
  EXPECT_FALSE(ValidLog({.newest = 31}));
  EXPECT_FALSE(ValidLog({.total = 6}));
  EXPECT_FALSE(ValidLog({.mark = 0}));
  EXPECT_FALSE(ValidLog({.mark = kMaxWindow.count() + 1}));
  EXPECT_FALSE(ValidLog({.head = 1}));
  EXPECT_FALSE(ValidLog({.head = 5}));
  EXPECT_FALSE(ValidLog({.head = std::numeric_limits<std::uint32_t>::max()}));
  EXPECT_FALSE(ValidLog({.tail = 45}));
  EXPECT_FALSE(ValidLog({.tail = std::numeric_limits<std::uint32_t>::max()}));
  EXPECT_FALSE(ValidLog({.count = 1}));
  EXPECT_FALSE(ValidLog({.given_back = 1}));  // the total must then be 4
  EXPECT_TRUE(ValidLog({.total = 4, .given_back = 1}));
  EXPECT_FALSE(ValidLog({.given_back = 2}));
}

TEST(State, LogWithAnEntryThatIsNotOneIsRefused) {
  // The second entry 0 ns after the first.
  EXPECT_FALSE(ValidLog({.newest = 10, .entries = {0x08, 0x02, 0x00}}));
  // A delta in more bytes than necessary.
  EXPECT_FALSE(ValidLog({.entries = {0x08, 0x02, 0x42, 0x01, 0x00}}));
  // A cost in more bytes than necessary.
  EXPECT_FALSE(ValidLog({.tail = 48, .entries = {0x08, 0x82, 0x00, 0x41, 0x01}}));
  // A delta of more than 64 bits.
  EXPECT_FALSE(ValidLog({.entries = {0x08, 0x02, 0x47, 1, 0, 0, 0, 0, 0, 0, 0x10}}));
  // A cost above the largest limit: 2^40 - 1 more than 2.
  EXPECT_FALSE(ValidLog({.total = kMaxLimit + 2,
                         .tail = 52,
                         .entries = {0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0x41, 0x01}}));
}

TEST(State, TimesThatNoStepCouldReachAreRefused) {
  const LogBytes late{.base = std::numeric_limits<Nanos>::max() - 20,
                      .newest = std::numeric_limits<Nanos>::max()};
  EXPECT_FALSE(ValidLog(late));
  const LogBytes early{.base = std::numeric_limits<Nanos>::min(),
                       .newest = std::numeric_limits<Nanos>::min() + 20};
  EXPECT_FALSE(ValidLog(early));
  // A lease ends after its grant.
  EXPECT_TRUE(Valid(Algorithm::kConcurrency, LogBytes{.mark = 29}.Build()));
  EXPECT_FALSE(Valid(Algorithm::kConcurrency, LogBytes{.mark = 30}.Build()));

  for (const Nanos bad : {std::numeric_limits<Nanos>::min(), std::numeric_limits<Nanos>::max()}) {
    Bytes bucket;
    Append(bucket, bad);
    Append<std::uint32_t>(bucket, 0);
    EXPECT_FALSE(Valid(Algorithm::kTokenBucket, bucket));
    Bytes window;
    Append(window, bad);
    Append<std::int64_t>(window, 1);
    EXPECT_FALSE(Valid(Algorithm::kFixedWindow, window));
  }
}

TEST(State, FixedWindowCountOutOfRangeIsRefused) {
  for (const std::int64_t bad : {std::int64_t{-1}, kMaxLimit + 1}) {
    Bytes window;
    Append<std::int64_t>(window, 100);
    Append(window, bad);
    EXPECT_FALSE(Valid(Algorithm::kFixedWindow, window));
  }
}

Bytes CounterBytes(std::int64_t index, std::int64_t width, std::uint16_t buckets,
                   const Bytes& counts) {
  Bytes bytes;
  Append(bytes, index);
  Append(bytes, width);
  Append(bytes, buckets);
  bytes.insert(bytes.end(), counts.begin(), counts.end());
  return bytes;
}

bool ValidCounter(const Bytes& bytes) { return Valid(Algorithm::kSlidingCounter, bytes); }

TEST(State, SlidingCounterThatIsNotOneIsRefused) {
  ASSERT_TRUE(ValidCounter(CounterBytes(3, 10, 2, {1, 0, 5})));
  ASSERT_TRUE(ValidCounter(CounterBytes(3, 10, 2, {})));
  EXPECT_FALSE(ValidCounter(CounterBytes(3, 10, 2, {1, 0, 5, 1})));  // more counts than buckets + 1
  EXPECT_FALSE(ValidCounter(CounterBytes(3, 10, 2, {1, 0})));        // a zero after the last
  EXPECT_FALSE(ValidCounter(CounterBytes(3, 10, 2, {0x81})));        // cut short
  EXPECT_FALSE(ValidCounter(CounterBytes(3, 10, 2, {0x81, 0x00})));  // longer than necessary
  EXPECT_FALSE(ValidCounter(CounterBytes(3, 0, 2, {1})));
  EXPECT_FALSE(ValidCounter(CounterBytes(3, -10, 2, {1})));
  EXPECT_FALSE(ValidCounter(CounterBytes(3, 10, 0, {1})));
  EXPECT_FALSE(ValidCounter(CounterBytes(3, 10, 1025, {1})));
  EXPECT_FALSE(ValidCounter(CounterBytes(0, kMaxWindow.count(), 2, {1})));  // 200 years
  EXPECT_FALSE(ValidCounter(CounterBytes(std::numeric_limits<std::int64_t>::max(), 10, 2, {1})));
  EXPECT_FALSE(ValidCounter(CounterBytes(std::numeric_limits<std::int64_t>::min(), 1, 2, {1})));
  EXPECT_FALSE(ValidCounter(
      CounterBytes(3, 10, 2, {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1})));
}

TEST(State, ClockAtTheEndsOfTimeIsSafeForEveryAlgorithm) {
  const Quota quotas[] = {Quota::TokenBucket(kMaxLimit, 1, nanoseconds(2'870'146)).value(),
                          Quota::FixedWindow(kMaxLimit, kMaxWindow).value(),
                          Quota::SlidingLog(kMaxLimit, kMaxWindow).value(),
                          Quota::SlidingCounter(kMaxLimit, kMaxWindow, 1).value(),
                          Quota::SlidingCounter(kMaxLimit, nanoseconds(1), 1).value(),
                          Quota::Concurrency(kMaxLimit, kMaxWindow).value(),
                          Quota::AnchoredWindow(kMaxLimit, kMaxWindow).value()};
  constexpr Nanos kEnds[] = {std::numeric_limits<Nanos>::max(), std::numeric_limits<Nanos>::min()};
  for (const Quota& quota : quotas) {
    for (const Nanos now : kEnds) {
      for (const Nanos then : kEnds) {
        Key key(quota);
        EXPECT_TRUE(key.Acquire(now, kMaxLimit).allowed()) << quota.ToString();
        EXPECT_EQ(key.Acquire(then, 1).allowed(), then > now) << quota.ToString();
        EXPECT_TRUE(key.Valid()) << quota.ToString();
        key.Refund(then, 1);
        EXPECT_TRUE(key.Valid()) << quota.ToString();
      }
    }
  }
}

}  // namespace
}  // namespace weir::algorithm
