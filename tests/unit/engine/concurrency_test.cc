// Real threads on the real clock or on one that stands still: under any interleaving exactly
// `limit` permits are granted, never one more, never one less. Also run under ThreadSanitizer.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/wait.h"
#include "weir/engine.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kStart = 1'700'000'000'000'000'000;

/// Runs `work(thread)` on `threads` threads that start together.
template <typename Work>
void Together(int threads, Work work) {
  std::latch ready(threads);
  std::vector<std::jthread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      ready.arrive_and_wait();
      work(t);
    });
  }
}

struct Case {
  std::string name;
  Quota quota;
  KeyStorage keys;
};

class ConcurrencyTest : public testing::TestWithParam<Case> {
 protected:
  Engine Make(std::size_t max_keys = 10'000) {
    return Engine(GetParam().quota,
                  {.max_keys = max_keys, .keys = GetParam().keys, .clock = &clock_});
  }

  ManualClock clock_{kStart};
};

constexpr std::int64_t kLimit = 1'000;

INSTANTIATE_TEST_SUITE_P(
    Algorithms, ConcurrencyTest,
    testing::Values(Case{"TokenBucket", *Quota::TokenBucket(kLimit, 1), KeyStorage::kFingerprint},
                    Case{"TokenBucketText", *Quota::TokenBucket(kLimit, 1), KeyStorage::kText},
                    Case{"FixedWindow", *Quota::FixedWindow(kLimit, 1h), KeyStorage::kFingerprint},
                    Case{"SlidingLog", *Quota::SlidingLog(kLimit, 1h), KeyStorage::kFingerprint},
                    Case{"SlidingCounter", *Quota::SlidingCounter(kLimit, 1h), KeyStorage::kText},
                    Case{"Concurrency", *Quota::Concurrency(kLimit, 1h), KeyStorage::kFingerprint},
                    Case{"AnchoredWindow", *Quota::AnchoredWindow(kLimit, 1h), KeyStorage::kText}),
    [](const auto& test) { return test.param.name; });

TEST_P(ConcurrencyTest, FiftyThreadsOnOneKeyGetExactlyTheLimit) {
  Engine engine = Make();
  std::atomic<std::int64_t> granted{0};
  Together(50, [&](int) {
    for (int i = 0; i < 100; ++i) {
      if (engine.TryAcquire("hot").allowed()) granted.fetch_add(1);
    }
  });
  EXPECT_EQ(granted.load(), kLimit);  // of 5,000 tries
  EXPECT_EQ(engine.stats().hits, 5'000U);
  EXPECT_EQ(engine.stats().allowed, static_cast<std::uint64_t>(kLimit));
}

TEST_P(ConcurrencyTest, AHundredThreadsOnTenKeysGetExactlyTheLimitOfEach) {
  Engine engine = Make();
  std::vector<std::atomic<std::int64_t>> granted(10);
  Together(100, [&](int t) {
    for (int i = 0; i < 150; ++i) {
      const auto key = static_cast<std::size_t>(t + i) % 10;
      if (engine.TryAcquire("key:" + std::to_string(key)).allowed()) granted[key].fetch_add(1);
    }
  });
  for (const auto& count : granted) EXPECT_EQ(count.load(), kLimit);  // of 1,500 tries each
}

// The callback of an eviction runs while its caller's shard is locked: which others are locked?
TEST(EngineLocks, AKeyWaitsForItsOwnShardAlone) {
  constexpr int kKeys = 10'000;
  constexpr int kOthers = 32;
  std::promise<void> evicting;
  std::promise<void> released;
  const std::shared_future<void> release = released.get_future().share();
  std::atomic<bool> first{true};
  Engine engine(*Quota::TokenBucket(10, 1), {.max_keys = kKeys, .on_evict = [&](const Eviction&) {
                                               if (!first.exchange(false)) return;
                                               evicting.set_value();
                                               release.wait();
                                             }});
  for (int i = 0; i < kKeys; ++i) (void)engine.TryAcquire("user:" + std::to_string(i));
  ASSERT_EQ(engine.stats().contended, 0U);
  std::atomic<bool> same_key_asks{false};
  std::atomic<bool> same_key_answered{false};
  std::atomic<int> others_answered{0};
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] { (void)engine.TryAcquire("new"); });
    evicting.get_future().wait();
    threads.emplace_back([&] {
      same_key_asks = true;
      (void)engine.TryAcquire("new");
      same_key_answered = true;
    });
    for (int i = 0; i < kOthers; ++i) {
      threads.emplace_back([&, i] {
        (void)engine.Peek("user:" + std::to_string(i));
        ++others_answered;
      });
    }
    EXPECT_TRUE(test::WaitUntil([&] { return same_key_asks && others_answered >= kOthers / 2; }));
    EXPECT_FALSE(same_key_answered);
    released.set_value();
  }
  EXPECT_TRUE(same_key_answered);
  EXPECT_GE(engine.stats().contended, 1U);
}

TEST_P(ConcurrencyTest, BatchesSinglesAndRefundsAddUp) {
  Engine engine = Make();
  std::atomic<std::int64_t> held{0};
  Together(8, [&](int t) {
    const std::vector<Ask> asks(7, Ask{.key = "hot"});
    std::vector<Decision> decisions(asks.size());
    for (int i = 0; i < 60; ++i) {
      if (t % 2 == 0) {
        engine.TryAcquireBatch(asks, decisions);
        for (const Decision& d : decisions) held.fetch_add(d.allowed() ? 1 : 0);
        continue;
      }
      const Decision decision = engine.TryAcquire("hot", 3);
      if (!decision.allowed()) continue;
      held.fetch_add(3);
      if (i % 4 != 0) continue;
      held.fetch_sub(3);
      if (decision.lease == 0) {
        (void)engine.Refund("hot", 3);
      } else {
        EXPECT_TRUE(engine.Release("hot", decision.lease));
      }
    }
  });
  EXPECT_LE(held.load(), kLimit);
  EXPECT_EQ(engine.Peek("hot", 0).remaining, kLimit - held.load());
}

TEST_P(ConcurrencyTest, GroupsThatCrossEachOtherNeitherLeakNorDeadlock) {
  Engine engine = Make();
  std::atomic<std::int64_t> groups{0};
  Together(16, [&](int t) {
    std::vector<Ask> asks = {{.key = "a"}, {.key = "b", .cost = 2}, {.key = "c"}};
    if (t % 2 == 0) std::reverse(asks.begin(), asks.end());
    std::vector<Decision> decisions(3);
    for (int i = 0; i < 100; ++i) {
      if (engine.TryAcquireAll(asks, decisions)) groups.fetch_add(1);
    }
  });
  EXPECT_EQ(groups.load(), kLimit / 2);  // b runs out first
  EXPECT_EQ(engine.Peek("a", 0).remaining, kLimit - groups.load());
  EXPECT_EQ(engine.Peek("b", 0).remaining, 0);
  EXPECT_EQ(engine.Peek("c", 0).remaining, kLimit - groups.load());
}

TEST_P(ConcurrencyTest, TheBoundHoldsUnderLoad) {
  Engine engine = Make(500);
  std::atomic<bool> over{false};
  Together(10, [&](int t) {
    for (int i = 0; i < 2'000; ++i) {
      (void)engine.TryAcquire(std::to_string(t) + ":" + std::to_string(i));
      if (engine.size() > 500) over = true;
    }
  });
  EXPECT_FALSE(over.load());
  EXPECT_EQ(engine.size(), 500U);
  EXPECT_EQ(engine.stats().created, 20'000U);
  EXPECT_EQ(engine.stats().evicted, 19'500U);
}

TEST_P(ConcurrencyTest, EverythingAtOnceStaysWhole) {
  Engine engine = Make(200);
  Together(8, [&](int t) {
    std::vector<Decision> decisions(2);
    for (int i = 0; i < 500; ++i) {
      const std::string key = "k" + std::to_string((i * 7 + t) % 300);
      const std::string other = "k" + std::to_string((i * 13 + t) % 300);
      switch ((i + t) % 8) {
        case 0:
          (void)engine.Peek(key);
          break;
        case 1:
          (void)engine.Refund(key);
          break;
        case 2:
          engine.Reset(key);
          break;
        case 3:
          engine.SetQuota(key, GetParam().quota);
          break;
        case 4:
          engine.ClearQuota(key);
          break;
        case 5: {
          const std::vector<Ask> asks = {{.key = key}, {.key = other}};
          (void)engine.TryAcquireAll(asks, decisions);
          break;
        }
        case 6:
          if (i % 100 == 6) {
            std::ostringstream out;
            (void)engine.Save(out);
            (void)engine.stats();
            (void)engine.Sweep();
          }
          break;
        default:
          (void)engine.TryAcquire(key);
          break;
      }
    }
  });
  std::size_t visited = 0;
  engine.Visit([&](const KeyView&) { ++visited; });
  EXPECT_EQ(visited, engine.size());
  EXPECT_LE(visited, 200U);
}

TEST(EngineOnTheRealClock, SustainedLoadGetsTheRateAndNoMore) {
  // An emptied bucket earns 1,000 a second, one per 1,000,000 ns, too large to overflow. It is
  // emptied between `start` and `emptied`, and again between `drained` and `end`; so the number of
  // grants is between those of the shortest and the longest of these spans, however the threads are
  // scheduled.
  constexpr std::int64_t kCapacity = 1'000'000;
  Engine engine(*Quota::TokenBucket(kCapacity, 1'000), {.max_keys = 10});
  const SystemClock& clock = SystemClock::Get();
  const Nanos start = clock.Now();
  ASSERT_TRUE(engine.TryAcquire("k", kCapacity).allowed());
  const Nanos emptied = clock.Now();
  std::atomic<std::int64_t> granted{0};
  Together(2, [&](int) {
    while (clock.Now() - start < 200'000'000) {
      if (engine.TryAcquire("k").allowed()) granted.fetch_add(1);
    }
  });
  const Nanos drained = clock.Now();
  while (engine.TryAcquire("k").allowed()) granted.fetch_add(1);
  const Nanos end = clock.Now();
  EXPECT_LE(granted.load(), (end - start) / 1'000'000);
  EXPECT_GE(granted.load(), (drained - emptied) / 1'000'000);
}

}  // namespace
}  // namespace weir
