#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weir/engine.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kStart = 1'700'000'000'000'000'000;

class EvictionTest : public testing::TestWithParam<KeyStorage> {
 protected:
  Engine Make(const Quota& quota, std::size_t max_keys) {
    return Engine(quota, {.max_keys = max_keys,
                          .keys = GetParam(),
                          .clock = &clock_,
                          .on_evict = [this](const Eviction& e) {
                            evicted_.emplace_back(e.key);
                            if (e.active) ++evicted_active_;
                          }});
  }
  static std::string Key(int i) { return "user:" + std::to_string(i); }

  ManualClock clock_{kStart};
  std::vector<std::string> evicted_;
  std::size_t evicted_active_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Keys, EvictionTest,
                         testing::Values(KeyStorage::kFingerprint, KeyStorage::kText),
                         [](const auto& test) {
                           return test.param == KeyStorage::kText ? "Text" : "Fingerprint";
                         });

TEST_P(EvictionTest, FiftyThousandKeysThroughTenThousandPlacesKeepTenThousand) {
  Engine engine = Make(*Quota::TokenBucket(100, 10), 10'000);
  for (int i = 0; i < 50'000; ++i) {
    ASSERT_TRUE(engine.TryAcquire(Key(i)).allowed());
    ASSERT_LE(engine.size(), 10'000U);
  }
  EXPECT_EQ(engine.size(), 10'000U);
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.created, 50'000U);
  EXPECT_EQ(stats.evicted, 40'000U);
  EXPECT_EQ(stats.evicted_active, 40'000U);  // the clock stands still: nobody's bucket refills
  EXPECT_EQ(evicted_.size(), 40'000U);
  EXPECT_EQ(evicted_active_, 40'000U);
}

TEST_P(EvictionTest, NothingIsEvictedBeforeTheBound) {
  Engine engine = Make(*Quota::TokenBucket(100, 10), 10'000);
  for (int i = 0; i < 10'000; ++i) (void)engine.TryAcquire(Key(i));
  EXPECT_EQ(engine.size(), 10'000U);
  EXPECT_EQ(engine.stats().evicted, 0U);
}

TEST_P(EvictionTest, KeysAsGoodAsNewGoBeforeActiveOnes) {
  for (const Quota& fast : {*Quota::TokenBucket(1, 1), *Quota::FixedWindow(10, 1s)}) {
    evicted_active_ = 0;
    Engine engine = Make(fast, 1'000);
    const Quota slow = *Quota::TokenBucket(1, 1, 1h);
    for (int i = 0; i < 500; ++i) (void)engine.TryAcquire(Key(i), fast);
    for (int i = 500; i < 1'000; ++i) (void)engine.TryAcquire(Key(i), slow);
    clock_.Advance(10s);  // the first half is now fresh again
    for (int i = 1'000; i < 1'400; ++i) (void)engine.TryAcquire(Key(i), slow);
    EXPECT_EQ(engine.stats().evicted, 400U);
    EXPECT_EQ(engine.stats().evicted_active, 0U);
    for (int i = 500; i < 1'400; ++i) {
      EXPECT_FALSE(engine.TryAcquire(Key(i), slow).allowed()) << "key " << i << " was reopened";
    }
  }
}

TEST_P(EvictionTest, AKeyInUseIsNotTheOneThatGoes) {
  Engine engine = Make(*Quota::TokenBucket(1'000'000, 1), 1'000);
  // 100 keys are used all the time while 20,000 others are used once each.
  for (int i = 0; i < 20'000; ++i) {
    (void)engine.TryAcquire("passer-by:" + std::to_string(i));
    (void)engine.TryAcquire(Key(i % 100));
  }
  // Each busy key was charged 200 times. A busy key that was evicted would have more left.
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(engine.Peek(Key(i), 0).remaining, 1'000'000 - 200) << i;
  }
}

TEST_P(EvictionTest, TheCallbackNamesTheKey) {
  Engine engine = Make(*Quota::TokenBucket(1, 1), 10);
  for (int i = 0; i < 11; ++i) (void)engine.TryAcquire(Key(i));
  ASSERT_EQ(evicted_.size(), 1U);
  EXPECT_EQ(evicted_[0], GetParam() == KeyStorage::kText ? Key(0) : "");
}

/// Runs something between the reading of a time and its use, as if the thread had been descheduled.
class StallingClock final : public Clock {
 public:
  explicit StallingClock(const Clock& clock) : clock_(clock) {}
  Nanos Now() const noexcept override {
    const Nanos now = clock_.Now();
    if (const auto stall = std::exchange(next_, nullptr)) stall();
    return now;
  }
  void StallOnce(std::function<void()> stall) { next_ = std::move(stall); }

 private:
  const Clock& clock_;
  mutable std::function<void()> next_;
};

// Dropping a key when it is fresh must not let a thread that reads it later, with an earlier time,
// charge it in a window that is over.
TEST_P(EvictionTest, AThreadThatStalledDuringASweepIsChargedAsOfTheSweep) {
  const Nanos start = kStart / 1'000'000'000 * 1'000'000'000;
  for (const Quota& quota : {*Quota::TokenBucket(1, 1), *Quota::FixedWindow(1, 1s),
                             *Quota::SlidingLog(1, 1s), *Quota::SlidingCounter(1, 1s, 4),
                             *Quota::Concurrency(1, 1s), *Quota::AnchoredWindow(1, 1s)}) {
    clock_.Set(start);
    StallingClock stalling(clock_);
    Engine engine(quota, {.max_keys = 1'000, .keys = GetParam(), .clock = &stalling});
    ASSERT_TRUE(engine.TryAcquire("k").allowed());
    clock_.Advance(2s - 100us);
    stalling.StallOnce([&] {
      clock_.Advance(100us);
      EXPECT_EQ(engine.Sweep(), 1U) << quota.ToString();
    });
    ASSERT_TRUE(engine.TryAcquire("k").allowed());
    clock_.Advance(1s - 50us);
    EXPECT_FALSE(engine.TryAcquire("k").allowed()) << quota.ToString() << ": twice within a second";
  }
}

TEST_P(EvictionTest, OneKeyIsEnough) {
  Engine engine = Make(*Quota::TokenBucket(1, 1), 1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(engine.TryAcquire(Key(i)).allowed());
    EXPECT_FALSE(engine.TryAcquire(Key(i)).allowed());
    EXPECT_EQ(engine.size(), 1U);
  }
}

TEST_P(EvictionTest, AGroupNeverEvictsItsOwnKeys) {
  Engine engine = Make(*Quota::TokenBucket(10, 1), 4);
  for (int i = 0; i < 4; ++i) (void)engine.TryAcquire(Key(i));
  const std::vector<Ask> asks = {{.key = "a"}, {.key = "b"}, {.key = "c"}, {.key = "d"}};
  std::vector<Decision> decisions(4);
  EXPECT_TRUE(engine.TryAcquireAll(asks, decisions));
  for (const Ask& ask : asks) EXPECT_EQ(engine.Peek(ask.key, 0).remaining, 9) << ask.key;
  EXPECT_EQ(engine.size(), 4U);
}

TEST_P(EvictionTest, AGroupLargerThanTheEngineIsDecidedAndCountedAsReopened) {
  Engine engine = Make(*Quota::TokenBucket(10, 1), 2);
  const std::vector<Ask> asks = {{.key = "a"}, {.key = "b"}, {.key = "c"}};
  std::vector<Decision> decisions(3);
  EXPECT_TRUE(engine.TryAcquireAll(asks, decisions));
  EXPECT_EQ(engine.size(), 2U);
  EXPECT_EQ(engine.stats().evicted_active, 1U);
}

}  // namespace
}  // namespace weir
