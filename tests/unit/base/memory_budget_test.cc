#include "base/memory_budget.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir {
namespace {

constexpr std::size_t kFair = std::size_t{256} << 10U;
constexpr std::size_t kMost = std::size_t{64} << 20U;

TEST(MemoryBudget, AFewMayHaveAllThatIsFair) {
  MemoryBudget budget(kMost);
  for (int i = 0; i < 256; ++i) EXPECT_TRUE(budget.Change(0, kFair));
  EXPECT_FALSE(budget.Change(kFair, kFair + 1));
  EXPECT_EQ(budget.Share(kFair), kFair);
}

TEST(MemoryBudget, ThousandsTogetherHaveLittleMoreThanItsBound) {
  constexpr std::size_t kHolders = 10'000;
  MemoryBudget budget(kMost);
  std::vector<std::size_t> holders(kHolders);
  for (std::size_t piece = 0; piece < kFair; piece += 8192) {
    for (std::size_t& held : holders) {
      const std::size_t before = held;
      held += 8192;
      if (budget.Change(before, held) || held <= budget.Share(kFair)) continue;
      (void)budget.Change(held, before);  // refused
      held = before;
    }
  }
  EXPECT_LE(budget.held(), kMost + kHolders * MemoryBudget::kLeast);
  for (const std::size_t held : holders) (void)budget.Change(held, 0);
  EXPECT_EQ(budget.held(), 0U);
  EXPECT_EQ(budget.Share(kFair), kFair);
}

}  // namespace
}  // namespace weir
