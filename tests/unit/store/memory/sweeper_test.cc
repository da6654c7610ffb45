#include "store/memory/sweeper.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/wait.h"

namespace weir::store::memory {
namespace {

using std::chrono::milliseconds;

TEST(Sweeper, FreesKeysThatHaveNothingLeftToRemember) {
  Engine engine(*Quota::SlidingLog(100, std::chrono::hours(1)));
  const Quota brief = *Quota::SlidingLog(1, milliseconds(1));
  for (int i = 0; i < 1000; ++i) engine.TryAcquire("brief-" + std::to_string(i), brief, 1);
  engine.TryAcquire("held");
  const Sweeper sweeper(engine, milliseconds(5));
  EXPECT_TRUE(test::WaitUntil([&] { return engine.size() == 1; }));
  EXPECT_TRUE(test::WaitUntil([&] { return sweeper.freed() == 1000; }));
  EXPECT_EQ(engine.Peek("held").remaining, 99);
}

TEST(Sweeper, EndsAtOnceHoweverLongItsInterval) {
  Engine engine(*Quota::TokenBucket(1, 1));
  const Sweeper sweeper(engine, std::chrono::hours(24));
}

}  // namespace
}  // namespace weir::store::memory
