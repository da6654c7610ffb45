#include "protocol/resp/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "unit/protocol/resp/bucket_limiter.h"

namespace weir::resp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RespSession : public ::testing::Test {
 protected:
  explicit RespSession(const std::vector<std::string>& passwords = {}) {
    if (passwords.empty()) return;
    service_.authenticate = [passwords](std::string_view word) {
      return std::find(passwords.begin(), passwords.end(), word) != passwords.end();
    };
  }

  // Feeds all of `input` as one read and returns the replies.
  std::string Talk(std::string_view input) {
    Buffer out;
    session().Feed(input, out);
    return std::string(out.view());
  }

  Session& session() {
    if (!session_)
      session_.emplace(worker_, "10.0.0.1:1234", "10.0.0.2:6380", [this] { ++resumed_; });
    return *session_;
  }

  BucketLimiter limiter_;
  Service service_;
  Worker worker_{service_, limiter_};
  std::optional<Session> session_;
  int resumed_ = 0;
};

class LockedRespSession : public RespSession {
 protected:
  LockedRespSession() : RespSession({"first", "second secret"}) {}
};

TEST_F(RespSession, AnswersWhatClientsSendOnTheirOwn) {
  EXPECT_EQ(Talk("PING\r\n"), "+PONG\r\n");
  EXPECT_EQ(Talk("ping hello\r\n"), "$5\r\nhello\r\n");
  EXPECT_EQ(Talk("ECHO hi\r\n"), "$2\r\nhi\r\n");
  EXPECT_EQ(Talk("SELECT 0\r\n"), "+OK\r\n");
  EXPECT_EQ(Talk("SELECT 1\r\n"), "-ERR DB index is out of range\r\n");
  EXPECT_EQ(Talk("CLIENT GETNAME\r\n"), "$-1\r\n");
  EXPECT_EQ(Talk("CLIENT SETNAME worker-1\r\nCLIENT GETNAME\r\n"), "+OK\r\n$8\r\nworker-1\r\n");
  EXPECT_EQ(Talk("CLIENT SETNAME \"a b\"\r\n"),
            "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
  EXPECT_EQ(Talk("CLIENT ID\r\n"), ":1\r\n");
  EXPECT_EQ(Talk("CLIENT SETINFO LIB-NAME redis-py\r\nCLIENT NO-EVICT ON\r\n"), "+OK\r\n+OK\r\n");
  EXPECT_THAT(Talk("CLIENT INFO\r\n"),
              HasSubstr("addr=10.0.0.1:1234 laddr=10.0.0.2:6380 name=worker-1"));
  EXPECT_EQ(Talk("CONFIG GET save\r\n"), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
  EXPECT_EQ(Talk("CONFIG GET appendonly\r\n"), "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
  EXPECT_EQ(Talk("CONFIG GET requirepass\r\n"), "*0\r\n");
  EXPECT_THAT(Talk("INFO\r\n"), HasSubstr("weir_version:"));
  EXPECT_THAT(Talk("INFO\r\n"), HasSubstr("tcp_port:6380\r\n"));
  EXPECT_EQ(Talk("COMMAND COUNT\r\n"), ":" + std::to_string(22) + "\r\n");
  EXPECT_THAT(
      Talk("COMMAND INFO nosuch cl.throttle\r\n"),
      StartsWith(
          "*2\r\n$-1\r\n*10\r\n$11\r\ncl.throttle\r\n:-5\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n"));
  EXPECT_THAT(Talk("COMMAND DOCS ping\r\n"),
              StartsWith("*2\r\n$4\r\nping\r\n*6\r\n$7\r\nsummary\r\n"));
}

TEST_F(RespSession, WordsErrorsAsRedisDoes) {
  EXPECT_EQ(Talk("FOO a b\r\n"),
            "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' \r\n");
  EXPECT_EQ(Talk("PING a b\r\n"), "-ERR wrong number of arguments for 'ping' command\r\n");
  EXPECT_EQ(Talk("ECHO\r\n"), "-ERR wrong number of arguments for 'echo' command\r\n");
  EXPECT_EQ(Talk("CLIENT FOO\r\n"), "-ERR unknown subcommand 'FOO'. Try CLIENT HELP.\r\n");
  EXPECT_EQ(Talk("HELLO 4\r\n"), "-NOPROTO unsupported protocol version\r\n");
  EXPECT_EQ(Talk("HELLO x\r\n"), "-ERR Protocol version is not an integer or out of range\r\n");
  EXPECT_EQ(Talk("HELLO 3 AUTH a\r\n"), "-ERR Syntax error in HELLO option 'AUTH'\r\n");
  EXPECT_THAT(Talk("AUTH x\r\n"), StartsWith("-ERR AUTH <password> called without any password"));
  EXPECT_FALSE(session().closing());
}

TEST_F(RespSession, KnowsEveryCommandItLists) {
  EXPECT_EQ(Talk("*1\r\n$12\r\nweir.releasx\r\n").substr(0, 20), "-ERR unknown command");
  for (const char* name : {"auth", "cl.throttle", "client", "command", "config", "echo", "hello",
                           "info", "ping", "quit", "reset", "select", "weir.apply", "weir.check",
                           "weir.peek", "weir.refund", "weir.release", "weir.reset"}) {
    EXPECT_THAT(Talk(std::string("COMMAND INFO ") + name + "\r\n"), HasSubstr(name));
  }
}

TEST_F(RespSession, HelloSwitchesToRespThree) {
  EXPECT_THAT(Talk("HELLO 3 SETNAME me\r\n"), StartsWith("%7\r\n$6\r\nserver\r\n$4\r\nweir\r\n"));
  EXPECT_EQ(Talk("CONFIG GET save\r\n"), "%1\r\n$4\r\nsave\r\n$0\r\n\r\n");
  EXPECT_EQ(Talk("CLIENT GETNAME\r\n"), "$2\r\nme\r\n");
  EXPECT_EQ(Talk("WEIR.CHECK k\r\n"),
            "%8\r\n+limited\r\n:0\r\n+limit\r\n:10\r\n+remaining\r\n:9\r\n+retry_after\r\n:-1\r\n"
            "+reset_after\r\n:1\r\n+policy\r\n$3\r\nten\r\n+lease\r\n:0\r\n+estimated\r\n:0\r\n");
  EXPECT_EQ(Talk("CL.THROTTLE k 0 1 1\r\n"), "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1\r\n");
  EXPECT_THAT(Talk("HELLO 2\r\n"), StartsWith("*14\r\n"));
  EXPECT_THAT(Talk("HELLO 3\r\nRESET\r\nCLIENT GETNAME\r\n"),
              ::testing::EndsWith("+RESET\r\n$-1\r\n"));
}

TEST_F(RespSession, PolicyCommandsAskTheLimiter) {
  // Ten permits, one refilled per second.
  EXPECT_EQ(Talk("WEIR.CHECK k 4\r\n"),
            "*8\r\n:0\r\n:10\r\n:6\r\n:-1\r\n:4\r\n$3\r\nten\r\n:0\r\n:0\r\n");
  EXPECT_EQ(Talk("WEIR.PEEK k 7\r\n"),
            "*8\r\n:1\r\n:10\r\n:6\r\n:1\r\n:4\r\n$3\r\nten\r\n:0\r\n:0\r\n");
  EXPECT_EQ(Talk("WEIR.REFUND k 3\r\n"),
            "*8\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:1\r\n$3\r\nten\r\n:0\r\n:0\r\n");
  EXPECT_EQ(Talk("WEIR.RESET k\r\n"), "+OK\r\n");
  EXPECT_EQ(Talk("WEIR.PEEK k\r\n"),
            "*8\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:1\r\n$3\r\nten\r\n:0\r\n:0\r\n");
  EXPECT_EQ(Talk("WEIR.CHECK k 11\r\n"),
            "*8\r\n:1\r\n:10\r\n:10\r\n:-1\r\n:0\r\n$3\r\nten\r\n:0\r\n:0\r\n");
  // 13 of 10: in debt until 3 are refilled.
  EXPECT_EQ(Talk("WEIR.OVERDRAW k 13\r\n"),
            "*8\r\n:1\r\n:10\r\n:0\r\n:3\r\n:13\r\n$3\r\nten\r\n:0\r\n:0\r\n");
  limiter_.leases = {77};
  EXPECT_EQ(Talk("WEIR.RELEASE k 77\r\nWEIR.RELEASE k 77\r\n"), ":1\r\n:0\r\n");
}

TEST_F(RespSession, SaysWhatIsEstimated) {
  limiter_.estimated = true;
  EXPECT_THAT(Talk("WEIR.CHECK k\r\n"), ::testing::EndsWith("$3\r\nten\r\n:0\r\n:1\r\n"));
}

TEST_F(RespSession, ThrottlesOfBothKindsInOneBatchKeepTheirOwnReplies) {
  EXPECT_EQ(Talk("CL.THROTTLE b 0 1 1\r\nTHROTTLE c 1 1 1\r\n"),
            "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1\r\n*5\r\n:1\r\n:1\r\n:0\r\n:1\r\n:0\r\n");
}

TEST_F(RespSession, PolicyCommandsCheckTheirArguments) {
  EXPECT_THAT(Talk("WEIR.RESERVE k 0\r\n"), StartsWith("-ERR cost must be"));
  EXPECT_THAT(Talk("WEIR.RESERVE k 1 0\r\n"), StartsWith("-ERR seconds must be"));
  EXPECT_THAT(Talk("WEIR.RESERVE k 1 1 1\r\n"), StartsWith("-ERR wrong number"));
  EXPECT_THAT(Talk("WEIR.SETTLE r -1\r\n"), StartsWith("-ERR cost must be"));
  EXPECT_THAT(Talk("WEIR.CHECK k -1\r\n"),
              StartsWith("-ERR cost must be an integer between 0 and "));
  EXPECT_THAT(Talk("WEIR.CHECK k x\r\n"), StartsWith("-ERR cost must be"));
  EXPECT_THAT(Talk("WEIR.REFUND k 0\r\n"),
              StartsWith("-ERR cost must be an integer between 1 and "));
  EXPECT_THAT(Talk("WEIR.CHECK k 1 2\r\n"),
              StartsWith("-ERR wrong number of arguments for 'weir.check'"));
  EXPECT_THAT(Talk("WEIR.RELEASE k 0\r\n"), StartsWith("-ERR lease must be"));
  EXPECT_TRUE(limiter_.batches.empty()) << "what is wrong is not asked";
}

TEST_F(RespSession, OneReadIsOneBatchAndRepliesKeepTheirOrder) {
  EXPECT_EQ(
      Talk("PING 1\r\nCL.THROTTLE a 0 1 1\r\nPING 2\r\nCL.THROTTLE a 0 1 1\r\nFOO\r\nPING 3\r\n"
           "WEIR.CHECK b\r\nCL.THROTTLE c x 1 1\r\nCL.THROTTLE c 1 1 1\r\nPING 4\r\n"),
      "$1\r\n1\r\n"
      "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1\r\n"
      "$1\r\n2\r\n"
      "*5\r\n:1\r\n:1\r\n:0\r\n:1\r\n:1\r\n"
      "-ERR unknown command 'FOO', with args beginning with: \r\n"
      "$1\r\n3\r\n"
      "*8\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:1\r\n$3\r\nten\r\n:0\r\n:0\r\n"
      "-ERR max_burst is not an integer: 'x'\r\n"
      "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:1\r\n"
      "$1\r\n4\r\n");
  EXPECT_THAT(limiter_.batches, ElementsAre(3, 1)) << "three CL.THROTTLE together, one WEIR.CHECK";
}

TEST_F(RespSession, ALateAnswerKeepsOrderAndHoldsBackTheRest) {
  limiter_.later = true;
  const std::string input = "PING 1\r\nCL.THROTTLE a 0 1 1\r\nWEIR.CHECK b\r\nPING 2\r\n";
  Buffer out;
  EXPECT_EQ(session().Feed(input, out), input.size());
  EXPECT_TRUE(session().waiting());
  EXPECT_EQ(out.view(), "$1\r\n1\r\n") << "what stands before the questions may go";
  EXPECT_EQ(limiter_.waiting(), 2U);
  limiter_.AnswerAll();
  EXPECT_EQ(resumed_, 1);
  EXPECT_FALSE(session().waiting());
  EXPECT_EQ(out.view(),
            "$1\r\n1\r\n*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1\r\n"
            "*8\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:1\r\n$3\r\nten\r\n:0\r\n:0\r\n$1\r\n2\r\n");
}

TEST_F(RespSession, AStoreThatIsAwayIsAnErrorReply) {
  limiter_.status = Error{Code::kUnavailable, "the store does not answer"};
  EXPECT_EQ(Talk("CL.THROTTLE a 0 1 1\r\nWEIR.CHECK b\r\n"),
            "-TRYAGAIN the store does not answer\r\n-TRYAGAIN the store does not answer\r\n");
  limiter_.status = {};
  EXPECT_EQ(Talk("CL.THROTTLE a 9 1 1\r\n").substr(0, 8), "*5\r\n:0\r\n") << "errors do not stick";
}

TEST_F(RespSession, AHundredThousandCommandsInOneWrite) {
  std::string input;
  for (int i = 0; i < 100'000; ++i) {
    const std::string key = "key:" + std::to_string(i % 1000);
    input += "*5\r\n$11\r\nCL.THROTTLE\r\n$" + std::to_string(key.size()) + "\r\n" + key +
             "\r\n$2\r\n49\r\n$1\r\n1\r\n$4\r\n3600\r\n";
  }
  std::string replies;
  Buffer out;
  std::size_t used = 0;
  while (used < input.size()) {
    const std::size_t taken = session().Feed(std::string_view(input).substr(used), out);
    ASSERT_GT(taken, 0U);
    used += taken;
    ASSERT_LE(out.size(), Session::kMaxOutput + Batch::kMaxQuestions * 128) << "output is bounded";
    replies += out.view();
    out.Clear();
  }
  // Each of the 1,000 keys is checked 100 times and grants 50: 50,000 in total.
  std::size_t allowed = 0;
  std::size_t count = 0;
  for (std::size_t at = replies.find("*5\r\n:"); at != std::string::npos;
       at = replies.find("*5\r\n:", at + 1)) {
    ++count;
    if (replies[at + 5] == '0') ++allowed;
  }
  EXPECT_EQ(count, 100'000U);
  EXPECT_EQ(allowed, 50'000U);
  EXPECT_EQ(service_.commands_total.load(), 100'000);
}

// COMMAND DOCS is 14 bytes and has a reply of thousands. After a check its replies wait in the
// batch.
TEST_F(RespSession, RepliesBehindAQuestionAreBoundedLikeTheOthers) {
  constexpr std::size_t kCommands = 2'000;
  std::string input = "WEIR.CHECK a\r\n";
  for (std::size_t i = 0; i < kCommands; ++i) input += "COMMAND DOCS\r\n";
  const std::size_t one = Talk("COMMAND DOCS\r\n").size();
  ASSERT_GT(one * kCommands, 3 * Session::kMaxOutput);
  std::size_t used = 0;
  std::size_t said = 0;
  while (used < input.size()) {
    Buffer out;
    const std::size_t taken = session().Feed(std::string_view(input).substr(used), out);
    ASSERT_GT(taken, 0U);
    used += taken;
    said += out.size();
    ASSERT_LE(out.size(), Session::kMaxOutput + one + 256);
  }
  EXPECT_GT(said, one * kCommands) << "all are answered";
}

TEST_F(RespSession, SplitAtEveryByteAnswersTheSame) {
  const std::string input =
      "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$1\r\n4\r\n$1\r\n1\r\n$1\r\n1\r\nCL.THROTTLE k 4 1 "
      "1\r\n"
      "PING\r\n*2\r\n$10\r\nWEIR.CHECK\r\n$1\r\nk\r\n";
  const std::string expected =
      "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1\r\n*5\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:2\r\n+PONG\r\n"
      "*8\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:1\r\n$3\r\nten\r\n:0\r\n:0\r\n";
  for (std::size_t cut = 0; cut <= input.size(); ++cut) {
    BucketLimiter limiter;
    Worker worker(service_, limiter);
    Session session(worker, "", "", [] {});
    Buffer in;
    Buffer out;
    in.Append(std::string_view(input).substr(0, cut));
    in.Consume(session.Feed(in.view(), out));
    in.Append(std::string_view(input).substr(cut));
    in.Consume(session.Feed(in.view(), out));
    EXPECT_EQ(out.view(), expected) << "cut at " << cut;
    EXPECT_TRUE(in.empty());
  }
  BucketLimiter limiter;
  Worker worker(service_, limiter);
  Session session(worker, "", "", [] {});
  Buffer in;
  Buffer out;
  for (const char byte : input) {
    in.Append({&byte, 1});
    in.Consume(session.Feed(in.view(), out));
  }
  EXPECT_EQ(out.view(), expected) << "byte by byte";
}

TEST_F(RespSession, BadInputIsToldAndCloses) {
  EXPECT_EQ(Talk("CL.THROTTLE a 0 1 1\r\n*1\r\n*1\r\n$4\r\nPING\r\n"),
            "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1\r\n-ERR Protocol error: expected '$', got '*'\r\n");
  EXPECT_TRUE(session().closing());
  EXPECT_EQ(Talk("PING\r\n"), "") << "nothing is read after it";
}

TEST_F(RespSession, QuitAnswersAndCloses) {
  EXPECT_EQ(Talk("CL.THROTTLE a 0 1 1\r\nQUIT\r\nPING\r\n"),
            "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1\r\n+OK\r\n");
  EXPECT_TRUE(session().closing());
}

TEST_F(LockedRespSession, NothingGoesWithoutAPassword) {
  for (const char* command :
       {"PING\r\n", "CL.THROTTLE a 0 1 1\r\n", "THROTTLE a 1 1 1\r\n", "WEIR.CHECK a\r\n",
        "INFO\r\n", "CLIENT LIST\r\n", "COMMAND\r\n", "CONFIG GET *\r\n"}) {
    EXPECT_EQ(Talk(command), "-NOAUTH Authentication required.\r\n") << command;
  }
  EXPECT_THAT(Talk("HELLO 3\r\n"), StartsWith("-NOAUTH HELLO must be called"));
  EXPECT_TRUE(limiter_.batches.empty());
}

TEST_F(LockedRespSession, AnyConfiguredPasswordOpens) {
  const std::string wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
  for (const char* attempt : {"AUTH x\r\n", "AUTH \"\"\r\n", "AUTH firs\r\n", "AUTH firstfirst\r\n",
                              "AUTH admin first\r\n", "HELLO 3 AUTH default x\r\n"}) {
    EXPECT_EQ(Talk(attempt), wrong) << attempt;
  }
  EXPECT_EQ(Talk("PING\r\n"), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(Talk("AUTH \"second secret\"\r\nPING\r\n"), "+OK\r\n+PONG\r\n");
  EXPECT_EQ(Talk("RESET\r\nPING\r\n"), "+RESET\r\n-NOAUTH Authentication required.\r\n");
  EXPECT_THAT(Talk("HELLO 3 AUTH default first SETNAME x\r\n"), StartsWith("%7\r\n"));
  EXPECT_EQ(Talk("PING\r\n"), "+PONG\r\n");
}

TEST_F(LockedRespSession, AStrangerCannotSendMuch) {
  EXPECT_EQ(Talk("*11\r\n"), "-ERR Protocol error: too many arguments\r\n");
  EXPECT_TRUE(session().closing());
}

TEST_F(LockedRespSession, AStrangerCannotSendLongArguments) {
  EXPECT_EQ(Talk("*2\r\n$4\r\nAUTH\r\n$16385\r\n"), "-ERR Protocol error: invalid bulk length\r\n");
}

TEST_F(LockedRespSession, APasswordOfTheDoorDoesNotMakeAnAdministrator) {
  service_.administrator = [](std::string_view, std::string_view word) {
    return word == "admin" ? std::optional<std::string>("the admin") : std::nullopt;
  };
  EXPECT_THAT(Talk("AUTH first\r\nWEIR.RESET a\r\n"), StartsWith("+OK\r\n-NOPERM "));
  EXPECT_EQ(Talk("AUTH admin\r\nWEIR.RESET a\r\n"), "+OK\r\n+OK\r\n");
}

TEST_F(LockedRespSession, AnAddressThatMayAdministrateStillNeedsAPassword) {
  service_.administrator = [](std::string_view address, std::string_view) {
    return std::optional<std::string>(address);
  };
  EXPECT_THAT(Talk("AUTH wrong\r\n"), StartsWith("-WRONGPASS "));
  EXPECT_EQ(Talk("WEIR.RESET a\r\n"), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(Talk("AUTH first\r\nWEIR.RESET a\r\n"), "+OK\r\n+OK\r\n");
}

}  // namespace
}  // namespace weir::resp
