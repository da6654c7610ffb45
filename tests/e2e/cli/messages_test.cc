// What the commands print about mistakes: what is wrong, where, and what to do.

#include <signal.h>

#include "e2e/cli/exit_codes.h"
#include "e2e/service/fixture.h"
#include "support/child_process.h"
#include "support/paths.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Messages : public ServiceTest {
 protected:
  void SetUp() override {
    file_ = ServePolicies(R"(domain: api
policies:
  - {name: burst, match: {user: "*"}, quota: {fixed_window: {limit: 2, window: 1m}}}
)")
                .string();
  }

  RunResult Weir(std::vector<std::string> words) {
    words.insert(words.begin(), Program());
    return RunProgram(words, {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(port_)}});
  }
  std::string File(const std::string& text, const std::string& name = "given.json") {
    return dir_.Write(name, text).string();
  }

  std::string file_;
};

TEST(Output, ThatCannotBeWrittenIsAnError) {
  for (const char* words : {"version", "completion bash", "--help"}) {
    const std::string command = Program() + " " + words;
    const RunResult full = RunProgram({"/bin/sh", "-c", command + " > /dev/full"});
    EXPECT_EQ(full.exit_code, 1) << words;
    EXPECT_THAT(full.error_output, StartsWith("weir: cannot write to standard output"));
    const RunResult other = RunProgram({"/bin/sh", "-c", command + " > /dev/null"});
    EXPECT_EQ(other.exit_code, kOk) << other.error_output;
  }
  const RunResult gone = RunProgram({"/bin/sh", "-c",
                                     "trap '' PIPE; { while echo; do :; done 2>/dev/null; " +
                                         Program() + " --version; echo $? >&2; } | true"});
  EXPECT_EQ(gone.error_output, "0\n") << "nobody reads any more";
}

TEST_F(Messages, APolicyOfAFileIsChangedThere) {
  const std::string there = "policy 'burst' is defined in " + file_ + ":3:5; change it there\n";
  const RunResult deleted = Weir({"policy", "delete", "burst"});
  EXPECT_EQ(deleted.exit_code, kRefused);
  EXPECT_EQ(deleted.error_output, "weir: 409: " + there);
  EXPECT_EQ(Client()
                .Send("PUT", "/admin/policies/burst",
                      R"({"type":"TOKEN_BUCKET","domain":"api","match":{"user":"*"}})")
                .status,
            409);
  EXPECT_THAT(Weir({"policy", "delete", "brst"}).error_output, StartsWith("weir: 404: "));
}

TEST_F(Messages, ADiffComparesWithThePolicyOfAFile) {
  const RunResult same = Weir({"policy", "diff", file_});
  EXPECT_EQ(same.exit_code, kOk) << same.error_output;
  EXPECT_EQ(same.output, "unchanged burst: defined in " + file_ + ":3:5\n");
  EXPECT_EQ(Weir({"policy", "apply", file_}).exit_code, kOk);
  const std::string other = File(
      R"({"key":"burst","domain":"api","match":{"user":"*"},"type":"FIXED_WINDOW","capacity":3})");
  const RunResult different = Weir({"policy", "diff", other});
  EXPECT_EQ(different.exit_code, kNo);
  EXPECT_THAT(different.output,
              AllOf(StartsWith("conflict burst: defined in " + file_ + ":3:5; change it there\n"),
                    HasSubstr("  capacity: 2 → 3\n"), Not(HasSubstr("match"))));
  EXPECT_THAT(Weir({"policy", "diff", other, "--json"}).output,
              StartsWith(R"({"policyKey":"burst","action":"conflict","definedIn":")" + file_));
  const RunResult applied = Weir({"policy", "apply", other});
  EXPECT_EQ(applied.exit_code, kRefused);
  EXPECT_THAT(applied.error_output, HasSubstr("policy 'burst' is defined in " + file_));
}

TEST_F(Messages, APolicyThatNoRequestMeetsIsWarnedOf) {
  const std::string quota = "quota: {fixed_window: {limit: 3, window: 1m}}";
  const std::string file =
      File("policies: [{name: j, match: {method: get}, " + quota + "}]\n", "given.yaml");
  const std::string warning =
      "weir: warning: j: the policy applies to no request: method 'get': methods are upper case\n";
  EXPECT_THAT(Weir({"policy", "apply", "--dry-run", file}).error_output, StartsWith(warning));
  const RunResult applied = Weir({"policy", "apply", file});
  EXPECT_EQ(applied.exit_code, kOk);
  EXPECT_THAT(applied.error_output, StartsWith(warning));
  EXPECT_THAT(
      Client()
          .Send("PUT", "/admin/policies/j",
                R"({"type":"FIXED_WINDOW","capacity":3,"windowSeconds":60,"domain":"api"})")
          .body,
      HasSubstr(
          R"("warnings":["domain is not used without match: the policy is for a bare key"])"));
}

TEST_F(Messages, OnlyTheNumbersOfTheAlgorithmAreShown) {
  const std::string window =
      Weir({"policy", "apply", File(R"({"key":"w","type":"FIXED_WINDOW"})")}).output;
  EXPECT_THAT(window, AllOf(HasSubstr("windowSeconds: - → 60\n"), Not(HasSubstr("refillRate")),
                            Not(HasSubstr("buckets"))));
  const std::string bucket = File(R"({"key":"w","type":"TOKEN_BUCKET"})");
  EXPECT_EQ(Weir({"policy", "apply", bucket}).output,
            "update w\n  refillRate: - → 10\n  type: \"FIXED_WINDOW\" → \"TOKEN_BUCKET\"\n"
            "  windowSeconds: 60 → -\n");
  EXPECT_THAT(Weir({"policy", "get", "w"}).output,
              AllOf(HasSubstr("refillRate"), Not(HasSubstr("windowSeconds"))));
}

// A typo in the number must not delete a payment cap.
TEST_F(Messages, AnUndoIsOnlyOfWhatItNames) {
  HttpClient client = Client();
  ASSERT_EQ(client
                .Post("/admin/rate-limit/config",
                      R"({"configName":"bank","maxPerWindow":100,"windowSize":"PT1S"})")
                .status,
            201);
  ASSERT_EQ(Weir({"policy", "apply", File(R"({"key":"bb","type":"TOKEN_BUCKET"})")}).exit_code,
            kOk);
  const RunResult policy = Weir({"policy", "undo", "1"});
  EXPECT_EQ(policy.exit_code, kUsage);
  EXPECT_EQ(policy.error_output,
            "weir: change 1 (slots.config of slots:bank) is not of a policy; weir audit --undo 1 "
            "undoes it\n");
  const RunResult named = Weir({"audit", "bb", "--undo", "1"});
  EXPECT_EQ(named.exit_code, kUsage);
  EXPECT_THAT(named.error_output, HasSubstr("is not of bb; "));
  EXPECT_EQ(client.Get("/admin/rate-limit/config/bank").status, 200);
  EXPECT_EQ(Weir({"audit", "bb", "--undo", "2"}).exit_code, kOk);
  EXPECT_EQ(Weir({"audit", "--undo", "1"}).exit_code, kOk);
}

TEST_F(Messages, AnUndoSaysWhichChangeCameLaterAndWhichOptionIsMissing) {
  ASSERT_EQ(Weir({"policy", "apply", File(R"({"key":"p","type":"TOKEN_BUCKET"})")}).exit_code, kOk);
  ASSERT_EQ(Weir({"policy", "delete", "p"}).exit_code, kOk);
  const RunResult early = Weir({"audit", "--undo", "1"});
  EXPECT_EQ(early.exit_code, kRefused);
  EXPECT_THAT(early.error_output,
              AllOf(StartsWith("weir: 409: "), HasSubstr("change 2 came later; undo that first")));
  HttpClient client = Client();
  ASSERT_EQ(client
                .Post("/admin/policies",
                      R"({"key":"q","type":"TOKEN_BUCKET","expiresAt":")" + Soon() + "\"}")
                .status,
            201);
  ASSERT_TRUE(WaitUntil([&] { return Weir({"policy", "get", "q"}).exit_code != kOk; }));
  EXPECT_THAT(Weir({"audit", "--undo", "4"}).error_output,
              EndsWith("; give --expires with a new time, or --expires never\n"));
  EXPECT_THAT(Weir({"audit", "--undo", "4", "--expires", "2h"}).output,
              StartsWith("undone: change 4 (policy.expire of policy:q)\n"));
  EXPECT_EQ(Weir({"audit", "--expires", "2h"}).exit_code, kUsage);
}

TEST_F(Messages, AnUndoOfWhatWasUndoneSaysHowToMakeItAgain) {
  ASSERT_EQ(Weir({"policy", "apply", File(R"({"key":"p","type":"TOKEN_BUCKET"})")}).exit_code, kOk);
  ASSERT_EQ(Weir({"policy", "delete", "p"}).exit_code, kOk);
  ASSERT_EQ(Weir({"audit", "--undo", "2"}).exit_code, kOk);
  EXPECT_EQ(Weir({"audit", "--undo", "2"}).error_output,
            "weir: 409: change 2 was already undone by change 3; undo that to make it again\n");
}

TEST_F(Messages, AFileThatIsNoPolicyFileIsCalledWhatItIs) {
  const auto said = [&](const std::string& text, const std::string& name) {
    return Weir({"policy", "apply", File(text, name)}).error_output;
  };
  EXPECT_THAT(said(R"({"key": "p", )", "p.json"),
              EndsWith("p.json:1:14: not valid JSON: the text ends here; expected a name in double "
                       "quotes\n"));
  EXPECT_THAT(said("a: [", "p.yaml"), HasSubstr(": not valid YAML: "));
  EXPECT_THAT(said("eventId,time\n", "feed.csv"), HasSubstr("feed.csv:1:1: expected a mapping"));
}

TEST_F(Messages, TimesAreReadAndShownPlainly) {
  EXPECT_THAT(
      Weir({"status", "--timeout", "0"}).error_output,
      StartsWith("weir: --timeout: expected a time such as 500ms or 2m, or seconds from 0.01 to "
                 "86400, got '0'\n"));
  EXPECT_THAT(Weir({"status", "--timeout", "5x"}).error_output,
              HasSubstr("a time such as 500ms or 2m, or seconds from 0.01 to 86400, got '5x'"));
  EXPECT_THAT(Weir({"status", "--timeout", "5ms"}).error_output, HasSubstr("got '0.005'"));
  EXPECT_EQ(Weir({"status", "--timeout", "9500ms"}).exit_code, kOk);
  EXPECT_THAT(Weir({"status", "--help"}).output, HasSubstr(" (or 500ms, 2m)"));
}

// The service need not be asked what the command line may not say.
TEST_F(Messages, NumbersOutOfRangeAreMistakesOnTheCommandLine) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"check", "a", "--cost", "-1"},
        {"check", "a", "--cost", "1.5"},
        {"explain", "a", "--cost", "1099511627777"},
        {"reserve", "a", "--cost", "-1"},
        {"reserve", "a", "--expires", "25h"},
        {"settle", "r", "--cost", "-1"},
        {"policy", "rollback", "burst", "0"},
        {"policy", "undo", "0"},
        {"notify", "config", "u", "--limit", "0", "--window", "60m"},
        {"notify", "config", "u", "--limit", "5", "--window", "0m"},
        {"notify", "config", "u", "--limit", "5", "--window", "90s"},
        {"notify", "config", "u", "--limit", "5", "--window", "525601m"},
        {"slots", "config", "set", "c", "--window", "4s", "--max", "0"},
        {"slots", "config", "set", "c", "--window", "4s", "--max", "1", "--headroom", "-1"},
        {"slots", "config", "set", "c", "--window", "4s", "--max", "1", "--fair-windows", "-1"}}) {
    const RunResult run = Weir(words);
    EXPECT_EQ(run.exit_code, kUsage) << words[0] << ' ' << words[1] << ": " << run.error_output;
    EXPECT_THAT(run.error_output, HasSubstr(": expected ")) << words[0];
  }
}

TEST_F(Messages, ARequestThatNoPolicyIsForGetsAHint) {
  const RunResult domain = Weir({"check", "--domain", "apy", "-e", "user=42"});
  EXPECT_EQ(domain.exit_code, kOk);
  EXPECT_EQ(domain.output, "allowed: no policy applies\n");
  EXPECT_EQ(domain.error_output, "weir: no policy uses domain 'apy'; did you mean 'api'?\n");
  EXPECT_EQ(Weir({"check", "--domain", "api", "-e", "usr=42"}).error_output,
            "weir: no policy of domain 'api' uses the entry 'usr'; did you mean 'user'?\n");
  EXPECT_THAT(Weir({"check", "-e", "usr=42"}).error_output, HasSubstr("domain 'api' uses the"));
  EXPECT_EQ(Weir({"explain", "--domain", "apy", "-e", "user=42"}).error_output,
            domain.error_output);
  EXPECT_EQ(Weir({"check", "--domain", "api", "-e", "user=42"}).error_output, "");
  EXPECT_EQ(Weir({"check", "--domain", "apy", "-e", "user=42", "--json"}).error_output, "");
}

TEST_F(Messages, ADispatcherWaitsForItsConfigAndSaysSoOnce) {
  const std::string url = "http://127.0.0.1:" + std::to_string(port_);
  ChildProcess dispatcher({Program(), "dispatch", "--url", url, "--config", "later"});
  const auto said = [&](std::string_view text) {
    return dispatcher.error_output().find(text) != std::string::npos;
  };
  ASSERT_TRUE(WaitUntil([&] { return said("cannot claim events"); }));
  EXPECT_THAT(dispatcher.error_output(),
              AllOf(HasSubstr("there is no config 'later'"),
                    HasSubstr("the config does not exist; waiting"),
                    HasSubstr("weir slots config set later --window 4s --max 100")));
  ASSERT_EQ(Weir({"slots", "config", "set", "later", "--window", "4s", "--max", "9"}).exit_code,
            kOk);
  ASSERT_TRUE(WaitUntil([&] { return said("claiming events again"); }));
  const std::string log = dispatcher.error_output();
  EXPECT_EQ(log.find("cannot claim events"), log.rfind("cannot claim events")) << log;
  dispatcher.Signal(SIGTERM);
  EXPECT_EQ(dispatcher.Wait(), 0);
}

// A retry cannot help, so it must look neither like a service that is down nor like one that
// forbids.
TEST_F(Messages, AValueThatCannotBeRightIsAUsageError) {
  const auto usage = [this](std::vector<std::string> words, const std::string& said) {
    const RunResult wrong = Weir(words);
    EXPECT_EQ(wrong.exit_code, kUsage) << wrong.error_output;
    EXPECT_THAT(wrong.error_output, StartsWith("weir: " + said));
  };
  usage({"check", "a", "--timeout", "nan"}, "--timeout: expected a time such as 500ms or 2m, or ");
  usage({"bench", "http", "--rate", "nan"}, "--rate: expected a number from 0 to 100000000");
  const std::string range = "--cost: expected a number from 0 to 1099511627776, got '";
  usage({"check", "a", "--cost", "-1"}, range + "-1'");
  usage({"explain", "a", "--cost", "99999999999999999999"}, range + "99999999999999999999'");
  usage({"reserve", "a", "--cost", "0"}, "--cost: expected a number from 1 to 1099511627776");
  usage({"top", "--kind", "shadw"},
        "--kind: expected hot, limited, shadow, both or all, got 'shadw'; did you mean shadow?\n");
  usage({"simulate", "--shape", "nothing"}, "--shape: expected steady, burst, ");
  usage({"check", "a", "--cost", "1", "--cost", "2"}, "--cost: may be given only once: ");
  usage({"policy", "diff", "a", "1", "2", "3"}, "versions: takes at most 2 values: ");
  usage({"serve", "--unmatched"}, "--unmatched: requires a value: ");  // the help does not show it
  // What only the service knows.
  usage({"check", std::string(5000, 'a')}, "400: key: ");
}

TEST_F(Messages, AFileOfTheCommandLineThatCannotBeUsedIsNamed) {
  const std::string folder = dir_.path().string();
  const std::string empty = File("", "empty.pem");
  const std::string https = "https://127.0.0.1:" + std::to_string(port_);
  const RunResult is_folder = Weir({"check", "a", "--url", https, "--ca", folder});
  EXPECT_EQ(is_folder.exit_code, kUsage);
  EXPECT_EQ(is_folder.error_output, "weir: --ca " + folder + ": is a directory; expected a file\n");
  const RunResult no_certificate = Weir({"check", "a", "--url", https, "--ca", empty});
  EXPECT_EQ(no_certificate.exit_code, kUsage);
  EXPECT_EQ(no_certificate.error_output, "weir: --ca " + empty + ": contains no PEM certificate\n");
  const std::string caps = File("userId,rateLimit,timeWindow\nu,x,1\n", "caps.csv");
  EXPECT_EQ(Weir({"notify", "import", caps}).error_output,
            "weir: " + caps + ": line 2: rateLimit must be a whole number\n");
  const RunResult beat = Weir({"healthcheck", "--file", folder});
  EXPECT_EQ(beat.exit_code, kNo);
  EXPECT_THAT(beat.error_output, HasSubstr(folder + ": not a file"));
}

TEST_F(Messages, AServiceWithoutTlsIsNamedAsOne) {
  const std::string here = "127.0.0.1:" + std::to_string(port_);
  const RunResult run = Weir({"check", "a", "--url", "https://" + here});
  EXPECT_EQ(run.exit_code, kUnreachable);
  EXPECT_THAT(run.error_output, EndsWith("the service answers without TLS: use http://\n"));
}

TEST_F(Messages, CommandsNameCommands) {
  EXPECT_THAT(Weir({"notify", "send", "nobody", "hi"}).error_output,
              HasSubstr("create it with `weir notify config`"));
  EXPECT_THAT(Weir({"slots", "assign", "e-1", "--config", "none"}).error_output,
              HasSubstr("create it with `weir slots config"));
}

TEST_F(Messages, ASenderSaysWhatIsWrongBeforeItWaitsForKafka) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> all = {
      {{"--broker", "foo"}, "--broker foo: "},
      {{"--store", "mysql://db/x"}, "--store must be postgres://"},
      {{"--store", "postgres://db/x?no_such_option=1"}, "--store: postgres:// URL"},
      {{"--metrics", "99999"}, "--metrics 99999: must be an IP address and port"},
      {{"--provider", "foo"}, "--provider: provider of all channels: must be console:"}};
  for (const auto& [words, said] : all) {
    // Nobody listens there, and Kafka's library would try for a long time.
    std::vector<std::string> line = {"sender", "--data", (dir_ / "sender").string()};
    if (words.front() != "--broker") line.insert(line.end(), {"--broker", "kafka://127.0.0.1:1"});
    line.insert(line.end(), words.begin(), words.end());
    const RunResult wrong = Weir(line);
    EXPECT_EQ(wrong.exit_code, kUsage) << said;
    EXPECT_THAT(wrong.error_output, StartsWith("weir: " + said));
  }
}

TEST_F(Messages, TheDefaultPolicyIsChangedInTheConfiguration) {
  for (const char* word : {"shadow", "enforce", "delete"}) {
    const RunResult refused = Weir({"policy", word, "default"});
    EXPECT_EQ(refused.exit_code, kRefused) << word << refused.error_output;
    EXPECT_THAT(refused.error_output,
                AllOf(HasSubstr("'default' is the default policy"), HasSubstr("default_policy")));
  }
}

}  // namespace
}  // namespace weir::test
