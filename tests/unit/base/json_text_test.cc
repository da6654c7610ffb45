#include "base/json_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/json_writer.h"

namespace weir {
namespace {

TEST(JsonText, EscapesWhatIsNotPrintableAndReplacesWhatIsNotUtf8) {
  std::string out;
  AppendJsonString(out, "a\"b\\c\n\x01\xff\xc3\xbc\x7f");
  EXPECT_EQ(out, "\"a\\\"b\\\\c\\n\\u0001\xef\xbf\xbd\xc3\xbc\\u007f\"");
}

TEST(JsonText, EscapesWhatSteersATerminalOrTurnsALine) {
  std::string out;
  // CSI as one character, next line, right-to-left override, line separator, a tag; an umlaut.
  AppendJsonString(out, "\xc2\x9b\xc2\x85\xe2\x80\xae\xe2\x80\xa8\xf3\xa0\x81\xa1\xc3\xbc");
  EXPECT_EQ(out, "\"\\u009b\\u0085\\u202e\\u2028\\udb40\\udc61\xc3\xbc\"");
}

TEST(JsonWriter, PutsCommasWhereTheyBelong) {
  std::string out = "before ";
  JsonWriter json(out);
  json.BeginObject().Field("name", "x\ty").Field("count", -3).Field("on", true);
  json.Key("empty").BeginArray().EndArray().Key("list").BeginArray();
  for (const int number : {1, 2}) json.BeginObject().Field("n", number).EndObject();
  json.Value("[{:").Null().EndArray().AnyKey("a\"b").Value(std::string("c")).EndObject();
  EXPECT_EQ(out, R"(before {"name":"x\ty","count":-3,"on":true,"empty":[],)"
                 R"("list":[{"n":1},{"n":2},"[{:",null],"a\"b":"c"})");
}

TEST(JsonWriter, WritesNumbersAsTheyAre) {
  const auto text = [](auto value) {
    return JsonText([value](JsonWriter& json) { json.Value(value); });
  };
  EXPECT_EQ(text(INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(text(UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(text(0.25), "0.25");
}

TEST(JsonWriter, ObjectsNestAsRawText) {
  const std::string inner = JsonObject([](JsonWriter& json) { json.Field("a", 1); });
  EXPECT_EQ(JsonObject([&](JsonWriter& json) { json.RawField("x", inner).RawField("y", inner); }),
            R"({"x":{"a":1},"y":{"a":1}})");
}

}  // namespace
}  // namespace weir
