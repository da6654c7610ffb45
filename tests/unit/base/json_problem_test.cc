#include "base/json_problem.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstddef>
#include <random>
#include <string>
#include <string_view>

namespace weir {
namespace {

TEST(JsonProblem, IsEmptyForJson) {
  for (const std::string_view text :
       {R"({})", R"([])", R"( {"a" : [1, -2.5e+3, true, false, null, "x\n\u00e9\ud83d\ude00"]} )",
        R"("text")", "0", "[[[]],{}]", "{\"ä\":\"€\"}"}) {
    EXPECT_EQ(JsonProblem(text), "") << text;
  }
}

TEST(JsonProblem, SaysWhereAndWhatIsMissing) {
  EXPECT_EQ(JsonProblem(R"({"key":"a","cost":1)"),
            "line 1, column 20: the text ends here; expected ',' or '}'");
  EXPECT_EQ(JsonProblem("{\n  \"key\": \"a\"\n  \"cost\": 1\n}"),
            "line 3, column 3: expected ',' or '}'");
  EXPECT_EQ(JsonProblem("[1 2]"), "line 1, column 4: expected ',' or ']'");
  EXPECT_EQ(JsonProblem(R"({"key" "a"})"), "line 1, column 8: expected ':' after the name");
  EXPECT_EQ(JsonProblem("{'key':1}"), "line 1, column 2: expected a name in double quotes");
  EXPECT_EQ(JsonProblem("{\"key\":'a'}"), "line 1, column 8: strings need double quotes");
  EXPECT_EQ(JsonProblem(R"({"a":1,})"), "line 1, column 8: nothing follows the comma before it");
  EXPECT_EQ(JsonProblem("{} x"), "line 1, column 4: nothing may follow the end");
  EXPECT_EQ(JsonProblem(R"({"key":"a)"),
            "line 1, column 8: the string that begins here has no end");
  EXPECT_EQ(JsonProblem(""),
            "line 1, column 1: the text ends here; expected a value: a string in double quotes, a "
            "number, true, false, null, { or [");
}

TEST(JsonProblem, SaysWhatIsWrongInNumbersAndStrings) {
  EXPECT_EQ(JsonProblem("[01]"), "line 1, column 2: '01' is not a number");
  EXPECT_EQ(JsonProblem("[1.]"), "line 1, column 2: '1.' is not a number");
  EXPECT_EQ(JsonProblem("[10s]"), "line 1, column 2: '10s' is not a number");
  EXPECT_EQ(JsonProblem("[-]"), "line 1, column 2: '-' is not a number");
  EXPECT_EQ(JsonProblem("[\"a\nb\"]"),
            R"(line 1, column 4: control characters and line breaks in strings need \, as in \n)");
  for (const std::string_view text : {R"(["\x"])", R"(["\u12"])"}) {
    EXPECT_EQ(JsonProblem(text),
              R"(line 1, column 3: not an escape that JSON knows; write \\ for \)")
        << text;
  }
  for (const std::string_view half : {"\\ud800", "\\udc00", "\\uD83d"}) {
    EXPECT_EQ(JsonProblem("[\"" + std::string(half) + "\\u0041\"]"),
              "line 1, column 3: " + std::string(half) +
                  R"( is half of a surrogate pair; write both halves, as in \ud83d\ude00)");
  }
  EXPECT_EQ(JsonProblem("[\"\xff\"]"), "line 1, column 3: the text is not UTF-8");
}

TEST(JsonProblem, CountsCharactersAndTakesAnyDepth) {
  EXPECT_EQ(JsonProblem("[\"€\" x]"), "line 1, column 6: expected ',' or ']'");
  EXPECT_EQ(JsonProblem(std::string(100'000, '[')).substr(0, 26), "line 1, column 100001: the");
}

// The parser of every body decides what is JSON: of 200,000 texts a few bytes from a valid one, it
// refuses those that have a problem, and no others.
TEST(JsonProblem, AgreesWithTheParser) {
  const std::string good =
      R"({"key":"a\nb","n":[1,-2.5e3,{"x":true}],"y":null,"z":"\u00e9\ud83d\ude00"})";
  const std::string_view bytes = "{}[]:,\"\\ \n0123456789-+.eEtrufalsn\xC3\xA9'x";
  simdjson::dom::parser parser;
  std::mt19937 engine(7);
  const auto random = [&engine] { return static_cast<std::size_t>(engine()); };
  int refused = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text = good;
    for (std::size_t edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      const char byte = bytes[random() % bytes.size()];
      if (const std::size_t kind = random() % 3; kind == 0) {
        text[at] = byte;
      } else if (kind == 1) {
        text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), byte);
      } else {
        text.erase(at, 1);
      }
    }
    simdjson::dom::element parsed;
    const auto error = parser.parse(text).get(parsed);
    // The parser refuses what JSON allows but no number type can hold.
    if (error == simdjson::NUMBER_ERROR) continue;
    refused += error != simdjson::SUCCESS ? 1 : 0;
    ASSERT_EQ(JsonProblem(text).empty(), error == simdjson::SUCCESS) << text;
  }
  EXPECT_GT(refused, 100'000);
}

}  // namespace
}  // namespace weir
