#include "base/number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace weir {
namespace {

TEST(Number, IsTheWholeText) {
  EXPECT_EQ(ParseNumber<int>("42"), 42);
  EXPECT_EQ(ParseNumber<int>("-42"), -42);
  EXPECT_EQ(ParseNumber<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(ParseNumber<std::uint64_t>("ff", 16), 255U);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "1.5", "-", "0x10"}) {
    EXPECT_FALSE(ParseNumber<int>(text)) << text;
  }
}

TEST(Number, MustFit) {
  EXPECT_FALSE(ParseNumber<std::uint16_t>("65536"));
  EXPECT_FALSE(ParseNumber<std::uint16_t>("-1"));
  EXPECT_FALSE(ParseNumber<std::int64_t>("9223372036854775808"));
  EXPECT_EQ(ParseNumber<int>("7", 1, 7), 7);
  EXPECT_FALSE(ParseNumber<int>("8", 1, 7));
  EXPECT_FALSE(ParseNumber<int>("0", 1, 7));
}

TEST(Number, FractionsAreRead) {
  EXPECT_EQ(ParseFraction("0.25"), 0.25);
  EXPECT_FALSE(ParseFraction("0.25x"));
  EXPECT_FALSE(ParseFraction(""));
}

}  // namespace
}  // namespace weir
