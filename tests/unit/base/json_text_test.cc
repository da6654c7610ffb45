#include "base/json_text.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

TEST(JsonText, EscapesWhatIsNotPrintableAndReplacesWhatIsNotUtf8) {
  std::string out;
  AppendJsonString(out, "a\"b\\c\n\x01\xff\xc3\xbc\x7f");
  EXPECT_EQ(out, "\"a\\\"b\\\\c\\n\\u0001\xef\xbf\xbd\xc3\xbc\\u007f\"");
}

TEST(JsonText, WritesFields) {
  std::string out;
  AppendJsonField(out, "name", "x\ty");
  out += ',';
  AppendJsonField(out, "count", -3);
  EXPECT_EQ(out, R"("name":"x\ty","count":-3)");
}

}  // namespace
}  // namespace weir
