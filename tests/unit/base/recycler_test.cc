#include "base/recycler.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace weir {
namespace {

TEST(Recycler, GivesABlockOfTheSameSizeAgain) {
  Recycler recycler;
  void* const first = recycler.Take(100);
  recycler.GiveBack(first);
  EXPECT_EQ(recycler.held(), 1U);
  // 100 and 128 bytes are both two steps of 64.
  EXPECT_EQ(recycler.Take(128), first);
  EXPECT_EQ(recycler.held(), 0U);
  void* const larger = recycler.Take(129);
  EXPECT_NE(larger, nullptr);
  EXPECT_NE(larger, first);
  recycler.GiveBack(larger);
  recycler.GiveBack(first);
}

TEST(Recycler, AlignsAsMallocDoes) {
  Recycler recycler;
  for (const std::size_t size : {0U, 1U, 63U, 64U, 65U, 1024U, 1025U, 5000U}) {
    void* const block = recycler.Take(size);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignof(std::max_align_t), 0U) << size;
    std::memset(block, 1, size);
    recycler.GiveBack(block);
  }
}

TEST(Recycler, KeepsNoLargeBlocksAndOnlySoManySmallOnes) {
  Recycler recycler;
  recycler.GiveBack(recycler.Take(Recycler::kLargest + 1));
  EXPECT_EQ(recycler.held(), 0U);
  std::vector<void*> blocks(Recycler::kKept + 10);
  for (void*& block : blocks) block = recycler.Take(10);
  for (void* block : blocks) recycler.GiveBack(block);
  EXPECT_EQ(recycler.held(), Recycler::kKept);
}

TEST(Recycler, ZeroesWhatWasUsedBefore) {
  Recycler recycler;
  void* const dirty = recycler.Take(64);
  std::memset(dirty, 0xFF, 64);
  recycler.GiveBack(dirty);
  auto* const bytes = static_cast<unsigned char*>(recycler.TakeZeroed(8, 8));
  ASSERT_EQ(bytes, dirty);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(bytes[i], 0) << i;
  recycler.GiveBack(bytes);
}

TEST(Recycler, RefusesWhatNoMemoryHolds) {
  Recycler recycler;
  EXPECT_EQ(recycler.Take(SIZE_MAX), nullptr);
  EXPECT_EQ(recycler.TakeZeroed(SIZE_MAX / 2, 3), nullptr);
}

TEST(Recycler, ResizingKeepsTheBytes) {
  Recycler recycler;
  auto* bytes = static_cast<char*>(recycler.Resize(nullptr, 5));
  std::memcpy(bytes, "check", 5);
  bytes = static_cast<char*>(recycler.Resize(bytes, 3000));
  EXPECT_EQ(std::memcmp(bytes, "check", 5), 0);
  bytes = static_cast<char*>(recycler.Resize(bytes, 5));
  EXPECT_EQ(std::memcmp(bytes, "check", 5), 0);
  recycler.GiveBack(bytes);
  recycler.GiveBack(nullptr);
}

}  // namespace
}  // namespace weir
