#include "protocol/resp/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::resp {
namespace {

using ::testing::ElementsAre;
using Outcome = Parser::Outcome;
using Words = std::vector<std::string>;

Words ArgumentsOf(const Parser& parser) {
  Words words;
  for (std::size_t i = 0; i < parser.count(); ++i) {
    words.emplace_back(parser[i]);
  }
  return words;
}

// All commands of `input`, given to the parser in pieces of `piece` bytes, each time in new memory.
// An error ends it and appears as a last command of one word.
std::vector<Words> ParseInPieces(std::string_view input, std::size_t piece,
                                 ParserLimits limits = {}) {
  Parser parser(limits);
  std::vector<Words> commands;
  std::string pending;
  while (!input.empty()) {
    const std::string_view next = input.substr(0, piece);
    input.remove_prefix(next.size());
    pending = std::string(pending) + std::string(next);
    for (;;) {
      const Outcome outcome = parser.Next(pending);
      if (outcome == Outcome::kError) {
        commands.push_back({parser.error()});
        return commands;
      }
      if (outcome == Outcome::kCommand) commands.push_back(ArgumentsOf(parser));
      pending.erase(0, parser.consumed());
      if (outcome == Outcome::kIncomplete) break;
    }
  }
  return commands;
}

std::string ErrorOf(std::string_view input, ParserLimits limits = {}) {
  Parser parser(limits);
  return parser.Next(input) == Outcome::kError ? parser.error() : "no error";
}

TEST(RespParser, ReadsAnArrayOfBulkStrings) {
  Parser parser;
  const std::string_view input = "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\nrest";
  ASSERT_EQ(parser.Next(input), Outcome::kCommand);
  EXPECT_THAT(ArgumentsOf(parser), ElementsAre("ECHO", "hi"));
  EXPECT_EQ(parser.consumed(), input.size() - 4);
  EXPECT_FALSE(parser.transient());
  EXPECT_EQ(parser[1].data(), input.data() + 18) << "arguments are views, not copies";
}

TEST(RespParser, BulkStringsHoldAnyBytes) {
  const std::string bytes("\0\r\n$*\xff", 6);
  const std::string input = "*1\r\n$6\r\n" + bytes + "\r\n";
  Parser parser;
  ASSERT_EQ(parser.Next(input), Outcome::kCommand);
  EXPECT_EQ(parser[0], bytes);
}

TEST(RespParser, SplitAtEveryByteGivesTheSameCommands) {
  const std::string input =
      "*5\r\n$11\r\nCL.THROTTLE\r\n$3\r\nk\r\n\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n"
      "PING \"a b\"\r\n\r\n*0\r\n*1\r\n$0\r\n\r\nECHO 'it\\'s'\n*-1\r\n*1\r\n$4\r\nQUIT\r\n";
  const std::vector<Words> expected = {{"CL.THROTTLE", "k\r\n", "15", "30", "60"},
                                       {"PING", "a b"},
                                       {""},
                                       {"ECHO", "it's"},
                                       {"QUIT"}};
  for (std::size_t piece = 1; piece <= input.size(); ++piece) {
    EXPECT_EQ(ParseInPieces(input, piece), expected) << "pieces of " << piece;
  }
  // Two pieces, split at every position.
  for (std::size_t cut = 1; cut < input.size(); ++cut) {
    Parser parser;
    std::vector<Words> commands;
    std::string pending = input.substr(0, cut);
    for (int part = 0; part < 2; ++part) {
      Outcome outcome = parser.Next(pending);
      while (outcome == Outcome::kCommand) {
        commands.push_back(ArgumentsOf(parser));
        pending.erase(0, parser.consumed());
        outcome = parser.Next(pending);
      }
      ASSERT_EQ(outcome, Outcome::kIncomplete);
      pending.erase(0, parser.consumed());
      if (part == 0) pending += input.substr(cut);
    }
    EXPECT_EQ(commands, expected) << "cut at " << cut;
  }
}

TEST(RespParser, InlineWordsMayBeQuotedAsInRedis) {
  const auto commands = ParseInPieces("  SET \"a\\x41\\n\\\"\" 'b\\n'  x\"y z\"\t\r\n", 1000);
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_THAT(commands[0], ElementsAre("SET", "aA\n\"", "b\\n", "xy z"));
}

TEST(RespParser, EscapesInDoubleQuotes) {
  const auto word = [](const std::string& quoted) {
    const std::string line = "ECHO \"" + quoted + "\"\r\n";
    Parser parser;
    return parser.Next(line) == Outcome::kCommand ? std::string(parser[1]) : parser.error();
  };
  EXPECT_EQ(word(R"(\n\r\t\b\a)"), "\n\r\t\b\a");
  EXPECT_EQ(word(R"(\q\\\")"), "q\\\"");
  EXPECT_EQ(word(R"(\x41\x6a)"), "Aj");
  EXPECT_EQ(word(R"(\x4g)"), "x4g") << "two digits or none";
  EXPECT_EQ(word(R"(\xg4)"), "xg4");
  EXPECT_EQ(word(R"(\x4)"), "x4");
}

TEST(RespParser, ABackslashAtTheEndOfALineClosesNoQuote) {
  for (const char* line : {"ECHO \"a\\\n", "ECHO 'a\\\n"}) {
    EXPECT_EQ(ErrorOf(line), "Protocol error: unbalanced quotes in request") << line;
  }
}

TEST(RespParser, EverySpaceSeparatesInlineWords) {
  EXPECT_THAT(ParseInPieces("a\vb\fc\td\r\n", 100), ElementsAre(Words{"a", "b", "c", "d"}));
}

TEST(RespParser, LongBulkStringsAreReadAsShortOnesAre) {
  const std::string text(150, 'l');
  const std::string input = "*2\r\n$4\r\nECHO\r\n$150\r\n" + text;
  for (const std::size_t piece : {std::size_t{1000}, std::size_t{7}}) {
    EXPECT_THAT(ParseInPieces(input + "\r\nPING\r\n", piece),
                ElementsAre(Words{"ECHO", text}, Words{"PING"}));
  }
  for (const char* end : {"xx", "\rx", "x\n"}) {
    EXPECT_EQ(ErrorOf(input + end), "Protocol error: expected CRLF after a bulk string");
    EXPECT_EQ(ErrorOf(std::string("*1\r\n$1\r\na") + end),
              "Protocol error: expected CRLF after a bulk string");
  }
  EXPECT_EQ(ErrorOf("*1\r\n$1\rxa\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$x\r\na\r\n"), "Protocol error: invalid bulk length");
}

TEST(RespParser, ShortBulkStringsHaveTheSameLimitsAsLongOnes) {
  ParserLimits limits;
  limits.max_bulk = 3;
  EXPECT_EQ(ErrorOf("*1\r\n$4\r\nPING\r\n", limits), "Protocol error: invalid bulk length");
  limits = {};
  limits.max_command = 20;
  // 4 + 10 bytes fit, 10 more do not.
  EXPECT_EQ(ErrorOf("*2\r\n$4\r\nECHO\r\n$4\r\nECHO\r\n", limits),
            "Protocol error: command too large");
  EXPECT_EQ(ErrorOf(std::string(21, 'i'), limits), "Protocol error: command too large");
  EXPECT_EQ(ErrorOf(std::string(20, 'i'), limits), "no error");
}

TEST(RespParser, InlineArgumentsAreTransient) {
  Parser parser;
  ASSERT_EQ(parser.Next("PING x\r\n"), Outcome::kCommand);
  EXPECT_TRUE(parser.transient());
}

TEST(RespParser, UnbalancedQuotesAreAnError) {
  EXPECT_EQ(ErrorOf("PING \"abc\r\n"), "Protocol error: unbalanced quotes in request");
  EXPECT_EQ(ErrorOf("PING 'abc\r\n"), "Protocol error: unbalanced quotes in request");
  EXPECT_EQ(ErrorOf("PING \"abc\"def\r\n"), "Protocol error: unbalanced quotes in request");
  EXPECT_EQ(ErrorOf("PING \"abc\\\r\n"), "Protocol error: unbalanced quotes in request");
}

TEST(RespParser, WrongLengthsAreErrors) {
  EXPECT_EQ(ErrorOf("*abc\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*1x\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*1\rx"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*99999999999999999999\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$-1\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$x\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$4\r\nPINGxx"), "Protocol error: expected CRLF after a bulk string");
}

TEST(RespParser, NestedArraysAndOtherTypesAreErrors) {
  EXPECT_EQ(ErrorOf("*1\r\n*1\r\n$4\r\nPING\r\n"), "Protocol error: expected '$', got '*'");
  EXPECT_EQ(ErrorOf("*1\r\n:5\r\n"), "Protocol error: expected '$', got ':'");
  EXPECT_EQ(ErrorOf("*1\r\n%1\r\n"), "Protocol error: expected '$', got '%'");
}

TEST(RespParser, LimitsAreExact) {
  const ParserLimits limits{.max_arguments = 2, .max_bulk = 3, .max_command = 26, .max_inline = 8};
  // 4 + 2 * (4 + 3 + 2) = 22 bytes: allowed. A third argument or a fourth byte is not.
  EXPECT_EQ(ErrorOf("*2\r\n$3\r\nabc\r\n$3\r\nabc\r\n", limits), "no error");
  EXPECT_EQ(ErrorOf("*3\r\n", limits), "Protocol error: too many arguments");
  EXPECT_EQ(ErrorOf("*1\r\n$4\r\n", limits), "Protocol error: invalid bulk length");
  // Eight bytes before the newline are allowed, nine are not, complete or not.
  EXPECT_EQ(ErrorOf("PING abc\n", limits), "no error");
  EXPECT_EQ(ErrorOf("PING abcd\n", limits), "Protocol error: too big inline request");
  EXPECT_EQ(ErrorOf("PING abcd", limits), "Protocol error: too big inline request");
  EXPECT_EQ(ErrorOf("a b c\n", limits), "Protocol error: too many arguments");
}

TEST(RespParser, ACommandLargerThanTheLimitIsRefusedBeforeItIsAllHere) {
  const ParserLimits limits{.max_arguments = 100, .max_bulk = 10, .max_command = 30};
  // 5 + 15 + 15 > 30: the second argument's length is enough.
  EXPECT_EQ(ErrorOf("*10\r\n$8\r\n12345678\r\n$8\r\n", limits),
            "Protocol error: command too large");
}

TEST(RespParser, EmptyCommandsAreDroppedFromTheFront) {
  Parser parser;
  EXPECT_EQ(parser.Next("\r\n\r\n*0\r\n*1\r\n$4\r\nPI"), Outcome::kIncomplete);
  EXPECT_EQ(parser.consumed(), 8U);
  ASSERT_EQ(parser.Next("*1\r\n$4\r\nPING\r\n"), Outcome::kCommand);
  EXPECT_EQ(parser.consumed(), 14U);
}

}  // namespace
}  // namespace weir::resp
