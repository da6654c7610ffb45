// The command line against a running service: its output and its exit codes.

#include "e2e/cli/exit_codes.h"
#include "e2e/service/fixture.h"
#include "support/paths.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kKey = "a-secret-of-tests";

class Cli : public ServiceTest {
 protected:
  void SetUp() override {
    const auto file = dir_.Write("policies.yaml", R"(policies:
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 2, window: 100d}}}
)");
    Serve({"--admin-key", kKey, "--policies", file.string()});
  }

  RunResult Weir(std::vector<std::string> words, const std::string& key = kKey) {
    words.insert(words.begin(), Program());
    return RunProgram(words, {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(port_),
                                      "WEIR_ADMIN_KEY=" + key}});
  }

  std::string File(const std::string& text) { return dir_.Write("given.json", text).string(); }
};

TEST_F(Cli, CheckEndsWithTheVerdict) {
  const RunResult allowed = Weir({"check", "-e", "user=42", "--cost", "2"});
  EXPECT_EQ(allowed.exit_code, kOk) << allowed.error_output;
  EXPECT_EQ(allowed.output, "allowed by per-user: 0 of 2 left\n");
  const RunResult limited = Weir({"check", "-e", "user=42"});
  EXPECT_EQ(limited.exit_code, kNo);
  EXPECT_THAT(limited.output, StartsWith("limited by per-user: 0 of 2 left; retry in "));
  EXPECT_THAT(Weir({"check", "user-1", "--json"}).output,
              StartsWith(R"({"allowed":true,"limit":100,"remaining":99,)"));
  const RunResult never = Weir({"check", "user-1", "--peek", "--cost", "101"});
  EXPECT_EQ(never.exit_code, kNo);
  EXPECT_EQ(never.output,
            "limited by default: cost 101 exceeds the limit of 100; it can never be allowed\n");
  EXPECT_EQ(Weir({"explain", "-e", "user=42"}).exit_code, kNo);
  EXPECT_THAT(Weir({"explain", "-e", "user=43"}).output, HasSubstr("default/per-user|user:43"));
  EXPECT_EQ(Weir({"check", "-e", "tenant=x"}).output, "allowed: no policy applies\n");
  EXPECT_EQ(Weir({"explain", "-e", "tenant=x"}).output, "allowed: no policy applies\n");
  EXPECT_THAT(Weir({"check", "user=42", "--peek"}).error_output,
              HasSubstr("user=42 is taken as a bare key; for an entry of a request, write -e"));
  EXPECT_EQ(Weir({"check", "user-1", "--peek"}).error_output, "");
  EXPECT_EQ(Weir({"policy", "shadow", "per-user"}).exit_code, kOk);
  EXPECT_EQ(Weir({"check", "-e", "user=42"}).output, "allowed: no enforced policy applies\n");
  EXPECT_THAT(Weir({"explain", "-e", "user=42"}).output,
              StartsWith("allowed: only shadow policies apply\n"));
}

TEST_F(Cli, AnOverdrawIsChargedWhetherItFitsOrNot) {
  EXPECT_EQ(Weir({"check", "-e", "user=7", "--overdraw"}).output,
            "allowed by per-user: 1 of 2 left\n");
  const RunResult debt = Weir({"check", "-e", "user=7", "--overdraw", "--cost", "5"});
  EXPECT_EQ(debt.exit_code, kNo) << debt.error_output;
  EXPECT_THAT(debt.output, StartsWith("limited by per-user: 0 of 2 left; charged, in debt for "));
  EXPECT_THAT(Weir({"check", "-e", "user=7"}).output,
              StartsWith("limited by per-user: 0 of 2 left; retry in "));
  EXPECT_EQ(Weir({"check", "user-1", "--peek", "--overdraw"}).exit_code, kUsage);
}

TEST_F(Cli, ReservesAndSettles) {
  const RunResult reserved = Weir({"reserve", "user-7", "--cost", "40", "--expires", "5m"});
  EXPECT_EQ(reserved.exit_code, kOk) << reserved.error_output;
  EXPECT_THAT(reserved.output, StartsWith("reserved by default: 60 of 100 left\n"));
  const std::size_t line = reserved.output.find('\n') + 1;
  const std::string text = reserved.output.substr(line, reserved.output.size() - line - 1);
  EXPECT_EQ(Weir({"reserve", "user-7", "--cost", "101"}).exit_code, kNo);
  const RunResult settled = Weir({"settle", text, "--cost", "1"});
  EXPECT_EQ(settled.exit_code, kOk) << settled.error_output;
  EXPECT_THAT(settled.output, StartsWith("settled by default: "));
  const RunResult again = Weir({"settle", text, "--cost", "1"});
  EXPECT_EQ(again.exit_code, kNo);
  EXPECT_EQ(again.output, "nothing to settle: already settled or expired\n");
  EXPECT_EQ(Weir({"reserve", "user-7", "--expires", "soon"}).exit_code, kUsage);
  EXPECT_THAT(Weir({"reserve", "user-7", "--cost", "101"}).output,
              HasSubstr("the cost exceeds the limit and can never be reserved"));
}

TEST_F(Cli, SaysThatTheStoreDidNotDecide) {
  Serve({"--admin-key", kKey, "--store", "redis://127.0.0.1:1"});
  // A tenth of 100, the local share, is 10 permits.
  EXPECT_EQ(Weir({"check", "user-1"}).output,
            "allowed by default: 9 of 10 left; the store is down: on_store_error decided\n");
}

TEST_F(Cli, MistakesAreNamedAndCorrected) {
  const auto said = [&](std::vector<std::string> words) {
    const RunResult run = Weir(std::move(words));
    EXPECT_EQ(run.exit_code, kUsage);
    return run.error_output;
  };
  EXPECT_EQ(said({"srve"}),
            "weir: srve: no such command; did you mean serve?\n"
            "see `weir --help`\n");
  EXPECT_EQ(said({"policy", "aply", "x"}),
            "weir: aply: no such command; did you mean apply?\n"
            "see `weir policy --help`\n");
  EXPECT_EQ(said({"serve", "--htpp", "off"}),
            "weir: --htpp: no such option; did you mean --http?\n"
            "see `weir serve --help`\n");
  EXPECT_THAT(said({"serve", "--htpp=off"}), StartsWith("weir: --htpp: no such option; did you"));
  EXPECT_THAT(said({"serve", "--store-required"}),
              StartsWith("weir: --store-required: requires a value: true: "));
  EXPECT_THAT(said({"check", "a", "--cost", "x"}),
              StartsWith("weir: --cost: expected a number from 0 to 1099511627776, got 'x'\n"));
  EXPECT_THAT(said({"audit", "--undo", "x"}),
              StartsWith("weir: --undo: expected a number of at least 1, got 'x'"));
  EXPECT_THAT(said({}), StartsWith("weir: a subcommand is required\n"));
  EXPECT_THAT(said({"policy"}),
              StartsWith("weir: a subcommand is required\nsee `weir policy --help`"));
  EXPECT_THAT(said({"simulate", "--quota", "{token_bucket: {capacity: 20}}"}),
              StartsWith("weir: --quota: token_bucket: expected refill_per_second"));
  EXPECT_EQ(Weir({"--version"}).output, Weir({"version"}).output);
}

TEST_F(Cli, AProgramThatCannotStartTellsWhetherTryingAgainHelps) {
  const std::string data = (dir_.path() / "second").string();
  const auto serve = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"serve", "--grpc", "off", "--resp", "off", "--data", data});
    return Weir(std::move(words));
  };
  EXPECT_EQ(serve({"--http", "127.0.0.1:80800"}).exit_code, kUsage);
  EXPECT_EQ(serve({"--http", "127.0.0.1:0", "--policies", File("polices: []")}).exit_code, kUsage);
  EXPECT_EQ(serve({"--http", "127.0.0.1:0", "--tls-cert", "/no", "--tls-key", "/no"}).exit_code,
            kUsage);
  EXPECT_EQ(Weir({"proxy", "--upstream", "ftp://127.0.0.1:1"}).exit_code, kUsage);
  EXPECT_EQ(Weir({"sender", "--broker", "kafka://"}).exit_code, kUsage);
  EXPECT_EQ(Weir({"migrate", "--store", "redis://x"}).exit_code, kUsage);
  const std::string file = File("a file");
  for (const std::string& folder : {file, file + "/within"}) {
    const RunResult wrong = Weir(
        {"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--data", folder});
    EXPECT_EQ(wrong.exit_code, kUsage) << wrong.error_output;
    EXPECT_THAT(wrong.error_output, HasSubstr("data: cannot create " + folder));
  }
  std::filesystem::remove_all(data);
  std::filesystem::create_directories(data + "/weir.db");
  EXPECT_EQ(serve({"--http", "127.0.0.1:0"}).exit_code, kUsage);
  std::filesystem::remove_all(data);
  std::filesystem::create_directories(data);
  std::ofstream(data + "/weir.db") << std::string(1000, 'x');
  EXPECT_EQ(serve({"--http", "127.0.0.1:0"}).exit_code, kUsage);
  std::filesystem::remove_all(data);
  const RunResult silent = serve({"--http", "off"});
  EXPECT_EQ(silent.exit_code, kUsage);
  EXPECT_THAT(silent.error_output, HasSubstr("http, grpc and resp are all off"));
  // The port may be free a moment later.
  const RunResult taken = serve({"--http", "127.0.0.1:" + std::to_string(port_)});
  EXPECT_EQ(taken.exit_code, 1);
  EXPECT_THAT(taken.error_output, HasSubstr("Address already in use; stop the program"));
}

TEST_F(Cli, ExitCodesTellFailuresApart) {
  EXPECT_EQ(Weir({"check"}).exit_code, kUsage);
  EXPECT_EQ(Weir({"check", "-e", "user"}).exit_code, kUsage);
  EXPECT_EQ(Weir({"no-such-word"}).exit_code, kUsage);
  EXPECT_EQ(Weir({"check", "a", "--url", "http://127.0.0.1:1"}).exit_code, kUnreachable);
  EXPECT_EQ(Weir({"check", "a", "--url", "ftp://x/y"}).exit_code, kUsage);
  EXPECT_EQ(Weir({"policy", "list"}, "a-wrong-secret").exit_code, kRefused);
  EXPECT_EQ(Weir({"policy", "get", "nobody"}).exit_code, kRefused);
  EXPECT_EQ(Weir({"policy", "apply", "/no/such/file"}).exit_code, kUsage);
  EXPECT_EQ(Weir({"policy", "apply", File("{")}).exit_code, kUsage);
}

TEST_F(Cli, PolicyFilesAreAppliedAsTheyAre) {
  const std::string file = File(
      "domain: default\npolicies:\n"
      "  - {name: yaml-user, match: {user: \"*\", route: /v1/*}, shadow: true,\n"
      "     quota: {sliding_log: {limit: 5, window: 1m}}}\n"
      "  - {name: yaml-key, key: yaml-key, on_store_error: deny, mode: leased,\n"
      "     quota: {token_bucket: {capacity: 70, refill: 20, period: 2s}}}\n");
  EXPECT_EQ(Weir({"policy", "diff", file}).exit_code, kNo);
  EXPECT_THAT(Weir({"policy", "apply", file}).output,
              AllOf(HasSubstr("create yaml-user\n"), HasSubstr("create yaml-key\n")));
  EXPECT_EQ(Weir({"policy", "diff", file}).output, "unchanged yaml-user\nunchanged yaml-key\n");
  EXPECT_THAT(Weir({"policy", "get", "yaml-key", "--json"}).output,
              AllOf(HasSubstr("\"type\":\"TOKEN_BUCKET\",\"capacity\":70,\"refillRate\":10"),
                    HasSubstr("\"onStoreError\":\"deny\",\"mode\":\"leased\"")));
  EXPECT_THAT(Weir({"explain", "yaml-key", "--json"}).output, HasSubstr("\"mode\":\"leased\""));
  const RunResult chain = Weir({"policy", "apply",
                                File("policies:\n  - {name: c, chain: [{user: \"*\"}],\n"
                                     "     quota: {fixed_window: {limit: 1, window: 1s}}}\n")});
  EXPECT_EQ(chain.exit_code, kUsage);
  EXPECT_THAT(chain.error_output, HasSubstr("the admin API does not support a chain"));
  EXPECT_EQ(Weir({"policy", "apply", File("policies:\n  - {name: c, mach: {}}\n")}).exit_code,
            kUsage);
}

// The service shows a file's policy, or the default one, under a name that is not stored.
TEST_F(Cli, APolicyIsAppliedThoughAFileHasAnotherOfItsName) {
  const auto of_domain = [](const std::string& domain) {
    return R"({"key":"per-user","type":"TOKEN_BUCKET","domain":")" + domain +
           R"(","match":{"user":"*"}})";
  };
  const RunResult same = Weir({"policy", "apply", File(of_domain("default"))});
  EXPECT_EQ(same.exit_code, kRefused);
  EXPECT_THAT(same.error_output, HasSubstr("is defined in"));
  const std::string file = File("[" + of_domain("elsewhere") +
                                R"(,{"key":"default","type":"TOKEN_BUCKET","capacity":6}])");
  const RunResult applied = Weir({"policy", "apply", file});
  EXPECT_EQ(applied.exit_code, kOk) << applied.error_output;
  EXPECT_THAT(applied.output, AllOf(HasSubstr("create per-user\n"), HasSubstr("create default\n")));
  EXPECT_EQ(Weir({"policy", "diff", file}).output, "unchanged per-user\nunchanged default\n");
}

TEST_F(Cli, TheListOfPoliciesEndsWithTheDefault) {
  EXPECT_THAT(
      Weir({"policy", "list"}).output,
      ContainsRegex("default +TOKEN_BUCKET +100, refill 10 per 1s  keys without a policy of "
                    "their own +enforced +built in *\n$"));
}

TEST_F(Cli, AnExceptionEndsByItself) {
  const std::string file = File(R"({"key":"big","type":"FIXED_WINDOW","capacity":3})");
  EXPECT_EQ(Weir({"policy", "apply", file, "--expires", "1h"}).exit_code, kOk);
  EXPECT_THAT(Weir({"policy", "get", "big", "--json"}).output, HasSubstr("\"expiresAt\":\"20"));
  EXPECT_EQ(Weir({"policy", "apply", file, "--expires", "never"}).exit_code, kOk);
  EXPECT_THAT(Weir({"policy", "get", "big", "--json"}).output, Not(HasSubstr("expiresAt")));
  EXPECT_EQ(Weir({"policy", "apply", file, "--expires", "soon"}).exit_code, kUsage);
  const RunResult past = Weir({"policy", "apply", file, "--expires", "2020-01-01T00:00:00Z"});
  EXPECT_EQ(past.exit_code, kUsage);
  EXPECT_THAT(past.error_output, HasSubstr("--expires 2020-01-01T00:00:00Z is in the past"));
  const std::string yaml = File(
      "policies:\n  - {name: y, key: y, quota: {fixed_window: "
      "{limit: 1, window: 1s}}}\n");
  EXPECT_EQ(Weir({"policy", "apply", yaml, "--expires", "2030-01-31T12:00:00Z"}).exit_code, kOk);
  EXPECT_THAT(Weir({"policy", "list"}).output, ContainsRegex("key y .*2030-01-31T12:00:00Z"));
}

TEST_F(Cli, WaitsAreReadAtAGlance) {
  // A fixed window of 100 days ends in days and hours, or hours and minutes on its last day.
  Weir({"check", "-e", "user=w", "--cost", "2"});
  const auto wait = ContainsRegex("[0-9]+ (d|h|min)( [0-9]+ (h|min|s))?\n");
  EXPECT_THAT(Weir({"check", "-e", "user=w"}).output, wait);
  const std::string explained = Weir({"explain", "-e", "user=w"}).output;
  EXPECT_THAT(explained, AllOf(wait, Not(HasSubstr("…")), Not(ContainsRegex("[0-9]{4} ms"))));
}

TEST_F(Cli, ARefusalSaysWhichRoleOrWhereToPutTheKey) {
  EXPECT_THAT(Weir({"status"}, "").error_output, HasSubstr("--key-file"));
}

TEST_F(Cli, ARequestThatNoPolicyAppliesToIsNoticed) {
  const RunResult bare = Weir({"explain", "user=ann", "--domain", "api"});
  EXPECT_EQ(bare.exit_code, kUsage);
  EXPECT_THAT(bare.error_output, HasSubstr("--domain api -e user=ann"));
  EXPECT_EQ(Weir({"check", "-e", "user=ann", "--domain", "nobody-has-this"}).exit_code, kOk);
  EXPECT_THAT(Weir({"status"}).output, ContainsRegex("unmatched +1\n"));
}

TEST_F(Cli, PoliciesMayBeWrittenWithTheNamesOfFiles) {
  const std::string flat =
      File(R"({"name":"n","type":"sliding_log","limit":5,"window":"1m","on_store_error":"deny"})");
  EXPECT_EQ(Weir({"policy", "apply", flat}).exit_code, kOk);
  EXPECT_THAT(Weir({"policy", "get", "n", "--json"}).output,
              HasSubstr("\"type\":\"SLIDING_WINDOW\",\"capacity\":5"));
  EXPECT_EQ(Weir({"policy", "diff",
                  File(R"({"key":"n","quota":{"sliding_log":{"limit":5,"window":"PT1M"}},)"
                       R"("onStoreError":"deny"})")})
                .output,
            "unchanged n\n");
  const auto said = [&](const std::string& json) {
    return Weir({"policy", "apply", File(json)}).error_output;
  };
  EXPECT_THAT(said(R"({"key":"n","type":"fixed_window","limit":5,"capacity":6})"),
              HasSubstr("capacity: was already given as limit"));
  EXPECT_THAT(said(R"({"key":"n","type":"fixed_window","window":"500ms"})"),
              HasSubstr("window: must be whole seconds"));
  EXPECT_THAT(said(R"({"key":"n","type":"fixed_window","match":{"agent":"*-bot"}})"),
              HasSubstr("match.agent: '*-bot' looks like a wildcard"));
  EXPECT_THAT(said(R"({"key":"user-*","type":"fixed_window"})"),
              HasSubstr("key: 'user-*' looks like a wildcard"));
}

TEST_F(Cli, NumbersThatAreNotUsedAreNamed) {
  const std::string file = File(
      R"([{"key":"w","type":"SLIDING_WINDOW","capacity":5,"refillRate":10,"windowSeconds":60},)"
      R"({"key":"z","type":"SLIDING_WINDOW","capacity":5,"refillRate":0,"windowSeconds":60}])");
  EXPECT_EQ(Weir({"policy", "apply", file}).error_output,
            "weir: warning: w: refillRate is not used by SLIDING_WINDOW\n");
  // Answers contain the numbers of all types; sending them back must not cause a warning.
  const std::string back = Weir({"policy", "get", "w", "--json"}).output;
  EXPECT_THAT(back, HasSubstr("\"refillRate\":10"));
  EXPECT_EQ(Weir({"policy", "apply", File(back)}).error_output, "");
}

TEST_F(Cli, PoliciesGoThroughTheirLife) {
  const std::string file = File(R"([{"key":"p","type":"FIXED_WINDOW","capacity":3}])");
  EXPECT_EQ(Weir({"policy", "diff", file}).exit_code, kNo);
  EXPECT_EQ(Weir({"policy", "apply", "--dry-run", file}).exit_code, kNo);
  EXPECT_EQ(Weir({"policy", "get", "p"}).exit_code, kRefused);  // nothing was created
  EXPECT_THAT(Weir({"policy", "apply", file}).output, StartsWith("create p\n"));
  const RunResult same = Weir({"policy", "diff", file});
  EXPECT_EQ(same.exit_code, kOk);
  EXPECT_EQ(same.output, "unchanged p\n");
  EXPECT_EQ(Weir({"policy", "apply",
                  File(R"({"key":"p","type":"FIXED_WINDOW","capacity":5,"shadow":true})")})
                .output,
            "update p\n  capacity: 3 → 5\n  shadow: false → true\n");
  EXPECT_THAT(Weir({"policy", "list"}).output,
              AllOf(ContainsRegex("p         FIXED_WINDOW  5 in 1m +key p +shadow +admin"),
                    ContainsRegex("per-user  FIXED_WINDOW  2 in 100d +user=\\* +enforced")));
  EXPECT_THAT(Weir({"policy", "history", "p"}).output,
              AllOf(HasSubstr("create"), HasSubstr("update")));
  EXPECT_EQ(Weir({"policy", "rollback", "p", "1"}).exit_code, kOk);
  EXPECT_THAT(Weir({"policy", "get", "p", "--json"}).output, HasSubstr("\"capacity\":3,"));
  EXPECT_EQ(Weir({"policy", "undo", "1"}).exit_code, kRefused);  // not the latest
  EXPECT_EQ(Weir({"policy", "undo", "3"}).exit_code, kOk);       // the rollback
  EXPECT_THAT(Weir({"policy", "get", "p", "--json"}).output, HasSubstr("\"capacity\":5,"));
  EXPECT_EQ(Weir({"policy", "delete", "p"}).exit_code, kOk);
  EXPECT_EQ(Weir({"policy", "delete", "p"}).exit_code, kRefused);
  // Latest first, as in the audit log; a deletion has no version of its own.
  EXPECT_THAT(Weir({"policy", "history", "p"}).output,
              ContainsRegex("-  [^ ]+  delete .*gone.*\n.*4  [^ ]+  undo .*\n"
                            ".*3  [^ ]+  rollback .*\n.*2  [^ ]+  update .*\n.*1  [^ ]+  create "));
}

TEST_F(Cli, WhatWasForAWhileComesBackOnlyWithANewEnd) {
  HttpClient client = Client();
  const HttpHeaders key = {{"X-API-Key", kKey}};
  client.Post("/admin/policies", R"({"key":"p","type":"TOKEN_BUCKET","capacity":1})", key);
  const std::string end = Soon();
  client.Send("PUT", "/admin/policies/p",
              R"({"type":"TOKEN_BUCKET","capacity":9,"expiresAt":")" + end + "\"}", key);
  const auto get = [&] { return Weir({"policy", "get", "p", "--json"}).output; };
  ASSERT_TRUE(WaitUntil([&] {  // version 3: it ended, change 3
    return Weir({"audit", "p", "--json"}).output.find("policy.expire") != std::string::npos;
  }));
  const RunResult refused = Weir({"policy", "rollback", "p", "2"});
  EXPECT_EQ(refused.exit_code, kRefused);
  EXPECT_THAT(refused.error_output,
              HasSubstr("409: version 2 ended at " + end + "; give --expires with a new time"));
  EXPECT_THAT(get(), AllOf(HasSubstr("\"capacity\":1,"), HasSubstr("\"version\":3")));
  EXPECT_EQ(Weir({"policy", "undo", "3"}).exit_code, kRefused);
  EXPECT_EQ(Weir({"policy", "rollback", "p", "2", "--expires", "soon"}).exit_code, kUsage);
  EXPECT_EQ(Weir({"policy", "rollback", "p", "2", "--expires", "2020-01-01T00:00:00Z"}).exit_code,
            kUsage);
  EXPECT_EQ(Weir({"policy", "undo", "3", "--expires", "2h"}).exit_code, kOk);
  EXPECT_THAT(get(), AllOf(HasSubstr("\"capacity\":9,"), HasSubstr("\"expiresAt\":\"20")));
  EXPECT_EQ(Weir({"policy", "rollback", "p", "1"}).exit_code, kOk);
  EXPECT_EQ(Weir({"policy", "rollback", "p", "2", "--expires", "2099-01-01T00:00:00Z"}).exit_code,
            kOk);
  EXPECT_THAT(get(), HasSubstr("\"expiresAt\":\"2099-01-01T00:00:00Z\""));
  EXPECT_EQ(Weir({"policy", "rollback", "p", "2", "--expires", "never"}).exit_code, kOk);
  EXPECT_THAT(get(), AllOf(HasSubstr("\"capacity\":9,"), Not(HasSubstr("expiresAt"))));
}

TEST_F(Cli, VersionsAreComparedWithEachOtherAndWithNow) {
  for (const char* text : {R"({"key":"p","type":"TOKEN_BUCKET","capacity":1})",
                           R"({"key":"p","type":"TOKEN_BUCKET","capacity":2,"shadow":true})",
                           R"({"key":"p","type":"TOKEN_BUCKET","capacity":3})"}) {
    ASSERT_EQ(Weir({"policy", "apply", File(text)}).exit_code, kOk);
  }
  const RunResult two = Weir({"policy", "diff", "p", "1", "2"});
  EXPECT_EQ(two.exit_code, kNo) << two.error_output;
  EXPECT_EQ(two.output, "capacity: 1 → 2\nshadow: false → true\n");
  EXPECT_EQ(Weir({"policy", "diff", "p", "2"}).output, "capacity: 2 → 3\nshadow: true → false\n");
  EXPECT_EQ(Weir({"policy", "diff", "p", "3"}).exit_code, kOk);
  EXPECT_EQ(Weir({"policy", "diff", "p", "3", "1", "--json"}).output,
            "{\"policyKey\":\"p\",\"from\":3,\"to\":1,\"changes\":"
            "[{\"field\":\"capacity\",\"before\":3,\"after\":1}]}\n");
  EXPECT_EQ(Weir({"policy", "diff", "p", "1", "9"}).exit_code, kRefused);
  EXPECT_EQ(Weir({"policy", "diff", "nobody", "1"}).exit_code, kRefused);
  ASSERT_EQ(Weir({"policy", "delete", "p"}).exit_code, kOk);
  EXPECT_THAT(Weir({"policy", "diff", "p", "1"}).output, HasSubstr("capacity: 1 → -\n"));
}

TEST_F(Cli, ADiffTakesTheExpiryThatApplyTakes) {
  const std::string file = File(R"({"key":"p","type":"TOKEN_BUCKET","capacity":1})");
  ASSERT_EQ(Weir({"policy", "apply", file}).exit_code, kOk);
  const RunResult diff = Weir({"policy", "diff", file, "--expires", "2099-01-01T00:00:00Z"});
  EXPECT_EQ(diff.exit_code, kNo) << diff.error_output;
  EXPECT_EQ(diff.output, "update p\n  expiresAt: - → \"2099-01-01T00:00:00Z\"\n");
  const RunResult versions = Weir({"policy", "diff", "p", "1", "--expires", "2h"});
  EXPECT_EQ(versions.exit_code, kUsage);
  EXPECT_THAT(versions.error_output, HasSubstr("--expires goes with a file"));
  // The value of an unknown option is not mistaken for a version.
  EXPECT_THAT(Weir({"policy", "diff", file, "--expire", "2h"}).error_output,
              HasSubstr("--expire: no such option; did you mean --expires?"));
  EXPECT_THAT(Weir({"policy", "diff", "p", "soon"}).error_output,
              HasSubstr("versions: expected a number of at least 1, got 'soon'"));
}

TEST_F(Cli, AuditListsChangesOfAllOrOfOneName) {
  for (int i = 1; i <= 3; ++i) {
    const std::string capacity = std::to_string(i);
    Weir({"policy", "apply",
          File(R"({"key":"p","type":"FIXED_WINDOW","windowSeconds":8640000,"capacity":)" +
               capacity + "}")});
  }
  Weir({"check", "p"});
  Weir({"reset", "p"});
  Weir({"check", "other", "--cost", "100"});
  Weir({"reset", "other"});
  const RunResult all = Weir({"audit"});
  EXPECT_EQ(all.exit_code, kOk) << all.error_output;
  EXPECT_THAT(all.output, AllOf(HasSubstr("policy:p"), HasSubstr("key:other"),
                                HasSubstr("capacity 1 → 2"), HasSubstr("policy.create")));
  const std::string some = Weir({"audit", "p"}).output;
  EXPECT_THAT(some, Not(HasSubstr("key:other")));
  EXPECT_EQ(std::count(some.begin(), some.end(), '\n'), 1 + 4);  // header, 3 changes, a reset
  const std::string latest = Weir({"audit", "p", "--limit", "1", "--json"}).output;
  EXPECT_THAT(latest, StartsWith("[{\"id\":4,"));
  EXPECT_THAT(latest, HasSubstr("\"action\":\"key.reset\""));
  EXPECT_EQ(Weir({"audit", "nobody", "--json"}).output, "[]\n");
  EXPECT_EQ(Weir({"audit", "nobody"}).output, "id  at  who  action  target  changed\n(none)\n");
  EXPECT_EQ(Weir({"audit", "--limit", "0"}).exit_code, kUsage);
  EXPECT_EQ(Weir({"audit"}, "a-wrong-secret").exit_code, kRefused);
}

TEST_F(Cli, AuditFindsPoliciesForACustomerWhateverTheirNames) {
  const auto made = [this](const std::string& key, const std::string& user) {
    const RunResult applied =
        Weir({"policy", "apply",
              File(R"({"key":")" + key +
                   R"(","type":"TOKEN_BUCKET","domain":"d","match":{"user":")" + user + "\"}}")});
    EXPECT_EQ(applied.exit_code, kOk) << applied.error_output;
  };
  made("daily-c-7", "somebody");
  made("exception", "c-7");
  made("daily-c-77", "c-77");
  EXPECT_THAT(Weir({"audit", "c-7"}).output,
              AllOf(HasSubstr("policy:daily-c-7 "), HasSubstr("policy:exception "),
                    Not(HasSubstr("c-77"))));
  EXPECT_THAT(Weir({"audit", "daily"}).output,
              AllOf(HasSubstr("policy:daily-c-7 "), HasSubstr("policy:daily-c-77 ")));
}

TEST_F(Cli, ChangesOfAnyKindAreListedAndUndone) {
  ASSERT_EQ(Weir({"notify", "config", "u1", "--limit", "3", "--window", "60m"}).exit_code, kOk);
  ASSERT_EQ(Weir({"notify", "config", "u1", "--limit", "5", "--window", "60m"}).exit_code, kOk);
  EXPECT_THAT(Weir({"audit", "u1"}).output, HasSubstr("notify.config  notify:u1  rateLimit 3 → 5"));
  EXPECT_EQ(Weir({"audit", "--undo", "1"}).exit_code, kRefused);  // not the latest
  EXPECT_EQ(Weir({"audit", "--undo", "2"}).output,
            "undone: change 2 (notify.config of notify:u1)\nto go further back, undo change 1\n");
  EXPECT_THAT(Weir({"notify", "config", "u1"}).output, ContainsRegex("rateLimit +3\n"));
  EXPECT_EQ(Weir({"notify", "config", "u2", "--limit", "3", "--window", "60m"}).exit_code, kOk);
  EXPECT_EQ(Weir({"audit", "--undo", "4"}).output,
            "undone: change 4 (notify.config of notify:u2); it no longer exists\n"
            "no earlier change to undo\n");
  EXPECT_EQ(Weir({"audit", "--undo", "3"}).output,
            "undone: change 3 (notify.undo of notify:u1), which had undone change 2; that one "
            "applies again\nto go further back, undo change 2\n");
  EXPECT_EQ(Weir({"audit", "--undo", "99"}).exit_code, kRefused);
  EXPECT_EQ(Weir({"notify", "config", "u1", "--limit", "3", "--window", "60m"}, "wrong").exit_code,
            kRefused);
}

TEST_F(Cli, ManyPagesOfPoliciesAreListed) {
  // More than a page of 200.
  HttpClient client = Client();
  for (int i = 0; i < 210; ++i) {
    ASSERT_EQ(client
                  .Post("/admin/policies",
                        R"({"type":"TOKEN_BUCKET","key":"p)" + std::to_string(i) + "\"}",
                        {{"X-API-Key", kKey}})
                  .status,
              201);
  }
  const std::string list = Weir({"policy", "list"}).output;
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'),
            1 + 210 + 1 + 1);  // header, ours, the file's, default
}

TEST_F(Cli, HostileNamesDoNotReachTheTerminal) {
  // JSON escapes: a terminal escape sequence cannot be in a name at all; the rest can.
  EXPECT_EQ(Weir({"policy", "apply", File("{\"key\":\"a\\u001b[31m\",\"type\":\"TOKEN_BUCKET\"}")})
                .exit_code,
            kUsage);
  for (const std::string name :
       {"<script>alert(1)</script>", "quote's \\\"and\\\" more", "bidi \\u202eevil\\u2066"}) {
    EXPECT_EQ(
        Weir({"policy", "apply", File("{\"key\":\"" + name + "\",\"type\":\"TOKEN_BUCKET\"}")})
            .exit_code,
        kOk)
        << name;
  }
  Check("{\"key\":\"new\\nline \\u001b]0;title\\u0007 \\u202e\"}");
  std::string top;
  EXPECT_TRUE(WaitUntil([&] {
    top = Weir({"top", "--once"}).output;
    return top.find("new") != std::string::npos;
  }));
  const std::string shown = top + Weir({"policy", "list"}).output;
  for (const char* bad : {"\x1b", "\x07", "\u202e", "\u2066"})
    EXPECT_THAT(shown, Not(HasSubstr(bad)));
  EXPECT_THAT(shown, AllOf(HasSubstr("new\\nline \\x1b]0;title\\x07 \\u{202e}"),
                           HasSubstr("bidi \\u{202e}evil\\u{2066}"),
                           HasSubstr("<script>alert(1)</script>")));
  // Also where answers are printed unchanged.
  const std::string user = "bidi \u202e";
  ASSERT_EQ(Weir({"notify", "config", user, "--limit", "1", "--window", "1m"}).exit_code, kOk);
  EXPECT_THAT(Weir({"notify", "config", user}).output,
              AllOf(Not(HasSubstr("\u202e")), HasSubstr("bidi \\u{202e}")));
  // Done, whether or not its charge has been refilled in the meantime.
  EXPECT_LE(Weir({"reset", "new\nline \x1b]0;title\x07 \u202e"}).exit_code, kNo);
  // A megabyte is refused with a message.
  const RunResult large =
      Weir({"policy", "apply",
            File("{\"key\":\"" + std::string(1'000'000, 'x') + "\",\"type\":\"TOKEN_BUCKET\"}")});
  EXPECT_NE(large.exit_code, kOk);
  EXPECT_LT(large.error_output.size(), 2000U);
}

TEST_F(Cli, ResetTakesWhatTopPrintsAndSaysWhetherAnythingWasHeld) {
  const auto limited = [&] {
    return Weir({"check", "-e", "user=z", "--cost", "2"}).exit_code == kNo;
  };
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"reset", "default/per-user|user:z"},
        {"reset", "-e", "user=z"},
        {"reset", "--domain", "default", "-e", "user=z"}}) {
    EXPECT_FALSE(limited());
    EXPECT_TRUE(limited());
    const RunResult reset = Weir(words);
    EXPECT_EQ(reset.exit_code, kOk) << reset.error_output;
    EXPECT_EQ(reset.output, "reset default/per-user|user:z\n");
  }
  EXPECT_FALSE(limited());
  const RunResult ghost = Weir({"reset", "nobody"});
  EXPECT_EQ(ghost.exit_code, kNo);
  EXPECT_EQ(ghost.output, "nothing to reset for nobody\n");
  EXPECT_EQ(Weir({"reset", "nobody", "--json"}).exit_code, kNo);
  EXPECT_EQ(Weir({"reset", "-e", "colour=red"}).exit_code, kRefused);
  EXPECT_EQ(Weir({"reset"}).exit_code, kUsage);
  EXPECT_THAT(Weir({"explain", "default/per-user|user:z"}).output,
              StartsWith("limited by per-user: 0 of 2 left; retry in "));
}

TEST_F(Cli, ResetTopStatusAndNotifyWork) {
  Weir({"check", "busy", "--cost", "100"});
  EXPECT_EQ(Weir({"reset", "busy"}).output, "reset busy\n");
  EXPECT_EQ(Weir({"check", "busy", "--cost", "100"}).exit_code, kOk);
  EXPECT_THAT(Weir({"status"}).output, HasSubstr("status          UP\n"));
  EXPECT_THAT(Weir({"status", "--json"}).output, StartsWith("{\"status\":\"UP\""));
  EXPECT_TRUE(WaitUntil([&] {
    return Weir({"top", "--once", "--kind", "hot"}).output.find("busy") != std::string::npos;
  }));
  EXPECT_THAT(Weir({"top", "--once", "--json"}).output, StartsWith("{\"live\":{\"now\":"));
  EXPECT_EQ(Weir({"notify", "config", "u1", "--limit", "1", "--window", "60m"}).exit_code, kOk);
  EXPECT_EQ(Weir({"notify", "send", "u1", "hello"}).exit_code, kOk);
  EXPECT_EQ(Weir({"notify", "send", "u1", "hello"}).exit_code, kNo);
  EXPECT_THAT(Weir({"notify", "quota", "u1"}).output, ContainsRegex("remaining +0\n"));
  EXPECT_EQ(Weir({"notify", "quota", "nobody"}).exit_code, kRefused);
}

// The whole error of a file is printed: the end of it says what to do.
TEST_F(Cli, StatusTellsAllOfWhatIsWrongWithAFile) {
  const auto file = dir_.Write("policies.yaml", R"(policies:
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: -1, window: 100d}}}
)");
  std::string output;
  EXPECT_TRUE(WaitUntil([&] {
    output = Weir({"status"}).output;
    return output.find("reloadProblems") != std::string::npos;
  }));
  EXPECT_THAT(output, AllOf(HasSubstr(file.string() + ":2:"), HasSubstr(", but is -1\n")));
}

}  // namespace
}  // namespace weir::test
