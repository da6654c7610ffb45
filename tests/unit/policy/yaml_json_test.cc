#include "policy/yaml_json.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::policy::yaml {
namespace {

std::string Json(std::string_view text) {
  std::vector<Problem> problems;
  const Document document = Document::Parse(text, "t.yaml", problems);
  EXPECT_TRUE(problems.empty()) << ToString(problems);
  return document.root() == nullptr ? "" : ToJson(*document.root());
}

TEST(YamlJson, ScalarsAreWhatTheyLookLike) {
  EXPECT_EQ(Json("[0, -1, 12.5, 1e9, -2.5E-3]"), "[0,-1,12.5,1e9,-2.5E-3]");
  EXPECT_EQ(Json("[true, false, ~]"), "[true,false,null]");
  EXPECT_EQ(Json(R"(["1", "true", '~'])"), R"(["1","true","~"])");
}

TEST(YamlJson, WhatJsonCannotWriteAsANumberIsAString) {
  EXPECT_EQ(Json("[007, 0x10, 1_000, .5, 5., +1, 1e, -, 1.2.3, .inf]"),
            R"(["007","0x10","1_000",".5","5.","+1","1e","-","1.2.3",".inf"])");
}

TEST(YamlJson, MappingsKeepTheirOrderAndEscape) {
  EXPECT_EQ(Json("b: { \"q\\\"\": [] }\na: \"line\\nbreak\"\n"),
            R"({"b":{"q\"":[]},"a":"line\nbreak"})");
}

}  // namespace
}  // namespace weir::policy::yaml
