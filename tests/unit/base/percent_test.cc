#include "base/percent.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace weir {
namespace {

TEST(Percent, DecodesAnyByte) {
  EXPECT_EQ(PercentDecoded("a%2Fb%2fc+d"), "a/b/c+d");
  EXPECT_EQ(PercentDecoded("a+b%2B", '+'), "a b+");
  EXPECT_EQ(PercentDecoded("%00%ff"), std::string("\0\xff", 2));
  EXPECT_EQ(PercentDecoded(""), "");
}

TEST(Percent, RefusesAnEscapeThatIsCutShortOrNoNumber) {
  for (const char* text : {"%", "%4", "a%", "%zz", "%4g", "% 1", "%+1", "%0x"}) {
    EXPECT_EQ(PercentDecoded(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace weir
