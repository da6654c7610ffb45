#include "weir/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace weir {
namespace {

Nanos Wall() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

TEST(SystemClock, AgreesWithTheWallClock) {
  // The thread may be descheduled between two readings, so the closest of many counts.
  Nanos closest = Nanos{1} << 62;
  for (int i = 0; i < 1'000; ++i) {
    const Nanos before = Wall();
    const Nanos now = SystemClock::Get().Now();
    const Nanos after = Wall();
    closest = std::min(closest, std::abs(now - (before + after) / 2));
  }
  EXPECT_LT(closest, 1'000'000);  // 1 ms
}

TEST(SystemClock, KeepsPaceWithTheMonotonicClock) {
  const auto steady_start = std::chrono::steady_clock::now();
  const Nanos start = SystemClock::Get().Now();
  Nanos elapsed = 0;
  std::int64_t steady_elapsed = 0;
  while (steady_elapsed < 50'000'000) {
    elapsed = SystemClock::Get().Now() - start;
    steady_elapsed = (std::chrono::steady_clock::now() - steady_start).count();
    // Read after ours, so it is never behind by more than the possible difference of the two.
    ASSERT_LT(elapsed, steady_elapsed + 10'000);
  }
}

TEST(SystemClock, NeverGoesBackOnAThread) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      Nanos last = SystemClock::Get().Now();
      for (int i = 0; i < 200'000; ++i) {
        const Nanos now = SystemClock::Get().Now();
        if (now < last) {
          ADD_FAILURE() << now << " after " << last;
          return;
        }
        last = now;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ManualClock, StandsStillUntilMoved) {
  ManualClock clock(5);
  EXPECT_EQ(clock.Now(), 5);
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(clock.Now(), 1'000'000'005);
  clock.Set(7);
  EXPECT_EQ(clock.Now(), 7);
}

}  // namespace
}  // namespace weir
