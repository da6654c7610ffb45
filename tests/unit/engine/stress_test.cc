// The engine at scale: many keys, many threads, the bound in effect. It must neither leak nor
// hang; speed is measured by ./dev bench engine.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "weir/engine.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(EngineStress, AMillionKeysOnFourThreadsAreEachLimitedOnce) {
  constexpr int kKeys = 1'000'000;
  ManualClock clock(1'700'000'000'000'000'000);
  Engine engine(*Quota::TokenBucket(1, 1), {.max_keys = kKeys, .clock = &clock});
  std::atomic<int> granted{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        // Every key is used by two of the four threads, in different orders.
        int mine = 0;
        for (int i = 0; i < kKeys / 2; ++i) {
          const int n = t % 2 == 0 ? i : kKeys / 2 - 1 - i;
          const int key = n * 2 + t / 2;
          if (engine.TryAcquire(std::to_string(key)).allowed()) ++mine;
        }
        granted.fetch_add(mine);
      });
    }
  }
  EXPECT_EQ(granted.load(), kKeys);
  EXPECT_EQ(engine.size(), static_cast<std::size_t>(kKeys));
  EXPECT_EQ(engine.stats().evicted, 0U);
}

TEST(EngineStress, AFloodOfNewKeysDoesNotReopenTheOnesInUse) {
  ManualClock clock(1'700'000'000'000'000'000);
  Engine engine(*Quota::TokenBucket(1'000, 1), {.max_keys = 10'000, .clock = &clock});
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> granted{0};
  std::atomic<std::int64_t> asked{0};
  std::jthread user([&] {
    while (!stop.load()) {
      if (engine.TryAcquire("in use").allowed()) granted.fetch_add(1);
      asked.fetch_add(1);
    }
  });
  for (int i = 0; i < 300'000; ++i) {
    (void)engine.TryAcquire("flood:" + std::to_string(i));
    if (i % 500 != 0) continue;
    // In use means checked now and then: a thread that a busy machine does not schedule during the
    // whole flood does not count.
    const std::int64_t before = asked.load();
    while (asked.load() == before) std::this_thread::yield();
  }
  while (granted.load() < 1'000) std::this_thread::yield();
  stop.store(true);
  user.join();
  EXPECT_EQ(granted.load(), 1'000);
  EXPECT_EQ(engine.size(), 10'000U);
}

}  // namespace
}  // namespace weir
