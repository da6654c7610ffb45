// The arguments of each command that tools and people send: which are understood, and Redis's
// wording for errors about the others.

#include "protocol/resp/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "unit/protocol/resp/bucket_limiter.h"

namespace weir::resp {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RespCommands : public ::testing::Test {
 protected:
  std::string Talk(std::string_view input) {
    if (!session_) session_.emplace(worker_, "10.0.0.1:1234", "10.0.0.2:6380", [] {});
    Buffer out;
    session_->Feed(input, out);
    return std::string(out.view());
  }

  BucketLimiter limiter_;
  Service service_;
  Worker worker_{service_, limiter_};
  std::optional<Session> session_;
};

TEST_F(RespCommands, Client) {
  EXPECT_EQ(Talk("CLIENT SETINFO LIB-VER 1.2\r\n"), "+OK\r\n");
  EXPECT_THAT(Talk("CLIENT LIST\r\n"), HasSubstr("lib-ver=1.2\n"));
  EXPECT_EQ(Talk("CLIENT SETINFO LIB-VER\r\n"),
            "-ERR wrong number of arguments for 'client|setinfo' command\r\n");
  EXPECT_EQ(Talk("CLIENT SETINFO COLOUR red\r\n"), "-ERR Unrecognized option 'COLOUR'\r\n");
  EXPECT_THAT(Talk("CLIENT SETINFO LIB-NAME \"a b\"\r\n"),
              StartsWith("-ERR lib-name and lib-ver cannot contain"));
  EXPECT_THAT(Talk("CLIENT SETNAME " + std::string(257, 'n') + "\r\n"),
              StartsWith("-ERR Client names cannot contain"));
  EXPECT_THAT(Talk("CLIENT SETNAME a\x7f\r\n"), StartsWith("-ERR Client names cannot contain"));
  EXPECT_EQ(Talk("CLIENT SETNAME\r\n"),
            "-ERR wrong number of arguments for 'client|setname' command\r\n");
  EXPECT_EQ(Talk("CLIENT NO-TOUCH ON\r\n"), "+OK\r\n");
  EXPECT_THAT(Talk("CLIENT HELP\r\n"), StartsWith("*2\r\n+CLIENT GETNAME"));
}

TEST_F(RespCommands, HelloAndAuth) {
  EXPECT_THAT(Talk("HELLO\r\n"), StartsWith("*14\r\n")) << "keeps the protocol that is spoken";
  EXPECT_EQ(Talk("HELLO 3 SETNAME\r\n"), "-ERR Syntax error in HELLO option 'SETNAME'\r\n");
  EXPECT_EQ(Talk("HELLO 3 COLOUR\r\n"), "-ERR Syntax error in HELLO option 'COLOUR'\r\n");
  EXPECT_THAT(Talk("HELLO 3 SETNAME \"a b\"\r\n"), StartsWith("-ERR Client names cannot contain"));
  // Like a Redis whose default user has no password.
  EXPECT_THAT(Talk("HELLO 2 AUTH default x\r\n"), StartsWith("*14\r\n"));
  EXPECT_EQ(Talk("AUTH default x\r\n"), "+OK\r\n");
  EXPECT_EQ(Talk("AUTH a b c\r\n"), "-ERR syntax error\r\n");
  EXPECT_THAT(Talk("AUTH somebody x\r\n"), StartsWith("-WRONGPASS"));
}

TEST_F(RespCommands, WhatTheyTell) {
  const std::string all = std::to_string(AllCommands().size());
  EXPECT_THAT(Talk("COMMAND\r\n"), StartsWith("*" + all + "\r\n*10\r\n$4\r\nauth\r\n"));
  EXPECT_EQ(Talk("COMMAND INFO\r\n"), Talk("COMMAND\r\n"));
  EXPECT_THAT(Talk("COMMAND LIST\r\n"), StartsWith("*" + all + "\r\n$4\r\nauth\r\n"));
  EXPECT_THAT(Talk("COMMAND DOCS\r\n"),
              StartsWith("*" + std::to_string(2 * AllCommands().size()) + "\r\n$4\r\nauth\r\n"));
  EXPECT_EQ(Talk("COMMAND DOCS nosuch\r\n"), "*0\r\n");
  EXPECT_EQ(Talk("COMMAND FOO\r\n"), "-ERR unknown subcommand 'FOO'. Try COMMAND HELP.\r\n");
  EXPECT_THAT(Talk("CONFIG GET *\r\n"), StartsWith("*8\r\n$10\r\nappendonly\r\n"));
  EXPECT_EQ(Talk("CONFIG SET save x\r\n"), "-ERR unknown subcommand 'SET'. Try CONFIG HELP.\r\n");
  EXPECT_EQ(Talk("CONFIG GET\r\n"), "-ERR wrong number of arguments for 'config|get' command\r\n");
  EXPECT_EQ(Talk("SELECT x\r\n"), "-ERR value is not an integer or out of range\r\n");
}

TEST_F(RespCommands, WhatIsUnknownIsQuotedUpToAPoint) {
  const std::string words(200, 'w');
  EXPECT_EQ(Talk("NO-SUCH-COMMAND-HERE " + words + " more\r\n"),
            "-ERR unknown command 'NO-SUCH-COMMAND-HERE', with args beginning with: '" +
                words.substr(0, 128) + "' \r\n");
  EXPECT_THAT(Talk("zzz\r\n"), StartsWith("-ERR unknown command 'zzz'"));
  // As long as a command with its own code path, and with almost the same name.
  EXPECT_THAT(Talk("CL.THROTTLX a 1 1 1\r\n"), StartsWith("-ERR unknown command 'CL.THROTTLX'"));
  EXPECT_THAT(Talk("THROTTLX a 1 1 1\r\n"), StartsWith("-ERR unknown command 'THROTTLX'"));
}

TEST_F(RespCommands, CostsAndTimesBeyondTheirBounds) {
  const std::string too_much = std::to_string(kMaxLimit + 1);
  for (const char* command : {"WEIR.CHECK k ", "WEIR.RESERVE k ", "WEIR.SETTLE r "}) {
    EXPECT_THAT(Talk(command + too_much + "\r\n"), StartsWith("-ERR cost must be an integer"));
    EXPECT_THAT(Talk(std::string(command) + "x\r\n"), StartsWith("-ERR cost must be an integer"));
  }
  EXPECT_THAT(Talk("WEIR.RESERVE k 1 x\r\n"), StartsWith("-ERR seconds must be"));
  EXPECT_THAT(Talk("WEIR.RESERVE k 1 100000000\r\n"), StartsWith("-ERR seconds must be"));
  EXPECT_THAT(Talk("WEIR.RELEASE k x\r\n"), StartsWith("-ERR lease must be"));
  EXPECT_TRUE(limiter_.batches.empty());
}

TEST_F(RespCommands, ReservesAndSettles) {
  EXPECT_EQ(
      Talk("WEIR.RESERVE k 4\r\n"),
      "*9\r\n:0\r\n:10\r\n:6\r\n:-1\r\n:4\r\n$3\r\nten\r\n:0\r\n:0\r\n$12\r\nuntil-600000\r\n");
  EXPECT_THAT(Talk("WEIR.RESERVE k 4 30\r\n"), EndsWith("$11\r\nuntil-30000\r\n"));
  EXPECT_THAT(Talk("WEIR.RESERVE k 9\r\n"), EndsWith(":0\r\n:0\r\n$-1\r\n"));
  EXPECT_THAT(Talk("WEIR.SETTLE until-30000 2\r\nWEIR.SETTLE until-30000 2\r\n"),
              ::testing::AllOf(StartsWith("*9\r\n"), EndsWith(":0\r\n:0\r\n")));
  EXPECT_THAT(Talk("HELLO 3\r\nWEIR.SETTLE until-600000 0\r\n"), EndsWith("+settled\r\n:1\r\n"));
}

// A client that forgets the user's name must not be without a limit.
TEST_F(RespCommands, AnEmptyKeyIsAnError) {
  for (const CommandSpec& spec : AllCommands()) {
    if (!spec.keyed || !spec.name.starts_with("weir.")) continue;
    const int words = std::abs(spec.arity);
    std::string command = "*" + std::to_string(words) + "\r\n$" + std::to_string(spec.name.size()) +
                          "\r\n" + std::string(spec.name) + "\r\n$0\r\n\r\n";
    for (int i = 2; i < words; ++i) command += "$1\r\n1\r\n";
    EXPECT_EQ(Talk(command), "-ERR the key must not be empty\r\n") << spec.name;
  }
  EXPECT_TRUE(limiter_.batches.empty());
}

TEST_F(RespCommands, WhatNoPolicyDecidedNamesNone) {
  limiter_.policy = "";
  EXPECT_THAT(Talk("WEIR.CHECK k\r\n"), EndsWith(":1\r\n$-1\r\n:0\r\n:0\r\n"));
}

TEST_F(RespCommands, ThrottleSaysWhatIsWrongWithIt) {
  EXPECT_THAT(Talk("CL.THROTTLE a x 1 1\r\n"), StartsWith("-ERR"));
  // A bucket that would take longer than 100 years to fill.
  EXPECT_THAT(Talk("CL.THROTTLE a 1000000000 1 1000000000\r\n"), HasSubstr("-ERR"));
  EXPECT_THAT(Talk("CL.THROTTLE " + std::string(Batch::kMaxKeyBytes + 1, 'k') + " 1 1 1\r\n"),
              HasSubstr("the key is longer than 4000 bytes"));
  EXPECT_TRUE(limiter_.batches.empty());
}

TEST_F(RespCommands, WhoMayNotGiveBackIsToldSoAndWhoMayIsOnRecord) {
  std::vector<std::string> record;
  service_.on_give_back = [&](std::string_view address, std::string_view action,
                              std::string_view key) {
    record.push_back(std::string(address) + " " + std::string(action) + " " + std::string(key));
  };
  EXPECT_THAT(Talk("WEIR.REFUND k\r\nWEIR.RELEASE k 7\r\nWEIR.SETTLE r 1\r\n"), EndsWith("\r\n"));
  EXPECT_THAT(record, ::testing::ElementsAre("10.0.0.1 check.refund k", "10.0.0.1 check.release k",
                                             "10.0.0.1 check.settle "));
  session_->client().gives_back = false;
  for (const char* command : {"WEIR.REFUND k\r\n", "WEIR.RELEASE k 7\r\n", "WEIR.SETTLE r 1\r\n"}) {
    EXPECT_THAT(Talk(command), StartsWith("-NOPERM this command requires a key")) << command;
  }
  EXPECT_EQ(record.size(), 3U);
}

}  // namespace
}  // namespace weir::resp
