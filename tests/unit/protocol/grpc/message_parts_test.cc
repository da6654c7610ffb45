#include "protocol/grpc/message_parts.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace weir::grpc {
namespace {

constexpr std::array<std::uint32_t, 2> kPath = {2, 1};

std::string Part(char number, const std::string& contents) {
  return static_cast<char>(number << 3 | 2) + std::string(1, static_cast<char>(contents.size())) +
         contents;
}

std::size_t Count(const std::string& message, std::size_t most = 1000) {
  return CountParts(message, kPath, most);
}

TEST(MessageParts, AreCountedAlongTheirPath) {
  EXPECT_EQ(Count(""), 0U);
  EXPECT_EQ(Count(Part(1, "domain")), 0U);
  EXPECT_EQ(Count(Part(2, "")), 1U);
  // A descriptor with two entries, whose strings do not count as parts, and one with none.
  const std::string entry = Part(1, Part(1, "key") + Part(2, "value"));
  EXPECT_EQ(Count(Part(1, "d") + Part(2, entry + entry) + Part(2, "")), 4U);
}

TEST(MessageParts, OtherFieldsArePassedOver) {
  const std::string others =
      "\x18\xff\xff\xff\xff\x0f"              // field 3, a number
      "\x25\x02\x02\x02\x02"                  // field 4, four bytes
      "\x29\x12\x12\x12\x12\x12\x12\x12\x12"  // field 5, eight bytes
      "\x33\x34";                             // field 6, an empty group
  EXPECT_EQ(Count(others + Part(2, others + Part(1, "")) + others + Part(2, "")), 3U);
  // A tag may be encoded in more bytes than necessary.
  EXPECT_EQ(Count(std::string("\x92\x80\x00\x00", 4)), 1U);
}

TEST(MessageParts, CountingEndsWhenItIsEnough) {
  std::string many;
  for (int i = 0; i < 100; ++i) many += Part(2, Part(1, "") + Part(1, ""));
  EXPECT_EQ(Count(many), 300U);
  EXPECT_EQ(Count(many, 10), 11U);
}

TEST(MessageParts, WhatIsMalformedIsLeftToTheParser) {
  EXPECT_EQ(Count(Part(2, "") + "\x12"), 1U);
  EXPECT_EQ(Count(Part(2, "") + "\x12\x05..."), 1U);
  EXPECT_EQ(Count(std::string(20, '\xff')), 0U);
}

TEST(MessageParts, ALargeMessageOfEmptyOnesHasTooMany) {
  std::string empty;
  for (int i = 0; i < 60'000; ++i) empty += Part(2, "");
  EXPECT_TRUE(HasTooManyParts(empty, kPath));
  EXPECT_FALSE(HasTooManyParts(empty.substr(0, 2 * kMaxParts), kPath));
  EXPECT_FALSE(HasTooManyParts(std::string(500'000, '\x0a'), kPath)) << "texts of another field";
}

}  // namespace
}  // namespace weir::grpc
