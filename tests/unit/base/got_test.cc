#include "base/got.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

TEST(Got, QuotesTextsAndLeavesJsonAsItIs) {
  EXPECT_EQ(Got("noon"), ", got 'noon'");
  EXPECT_EQ(Got(""), ", got ''");
  EXPECT_EQ(GotJson(R"({"a":1})"), R"(, got {"a":1})");
}

TEST(Got, CutsBetweenCharactersAndShowsNoControlCharacters) {
  EXPECT_EQ(Got(std::string(64, 'x')), ", got '" + std::string(64, 'x') + "'");
  EXPECT_EQ(Got(std::string(65, 'x')), ", got '" + std::string(64, 'x') + "…'");
  EXPECT_EQ(Got(std::string(63, 'x') + "€"), ", got '" + std::string(63, 'x') + "…'");
  EXPECT_EQ(Got("a\x1b[31m\n"), ", got 'a?[31m?'");
  EXPECT_EQ(Got("\xff€"), ", got '" + std::string(4, '?') + "'");
}

}  // namespace
}  // namespace weir
