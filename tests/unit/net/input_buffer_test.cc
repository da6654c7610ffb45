#include "net/input_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace weir::net {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

TEST(InputBuffer, MemoryOfALargeRequestIsGivenBackInSlices) {
  InputBuffer buffer(64);
  for (std::size_t left = 9 * kMiB; left > 0;) {
    const std::size_t size = std::min(left, buffer.Space().size());
    std::fill_n(buffer.Space().begin(), size, 'x');
    buffer.Commit(size);
    left -= size;
  }
  EXPECT_TRUE(buffer.Shrink());  // not while it is not empty
  EXPECT_EQ(buffer.capacity(), 16 * kMiB);
  buffer.Consume(9 * kMiB);
  for (std::size_t slices = 1; slices < 16; ++slices) {
    EXPECT_FALSE(buffer.Shrink());
    EXPECT_EQ(buffer.capacity(), (16 - slices) * kMiB);
  }
  EXPECT_TRUE(buffer.Shrink());
  EXPECT_EQ(buffer.capacity(), 0U);
}

TEST(InputBuffer, WhatArrivesWhileMemoryIsGivenBackIsKept) {
  InputBuffer buffer(64);
  while (buffer.capacity() < 4 * kMiB) buffer.Commit(buffer.Space().size());
  buffer.Consume(buffer.unread().size());
  EXPECT_FALSE(buffer.Shrink());
  std::fill_n(buffer.Space().begin(), 3, 'a');
  buffer.Commit(3);
  EXPECT_TRUE(buffer.Shrink());
  EXPECT_EQ(std::string_view(buffer.unread().data(), buffer.unread().size()), "aaa");
}

}  // namespace
}  // namespace weir::net
