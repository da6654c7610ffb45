// What the commands print, in detail: meaningful numbers, and names that other commands accept.

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

class Details : public ServiceTest {
 protected:
  void SetUp() override {
    ServePolicies(R"(domain: api
policies:
  - {name: any, match: {user: "*"}, quota: {fixed_window: {limit: 9, window: 100d}}}
  - {name: vip, match: {user: vip}, quota: {fixed_window: {limit: 5, window: 100d}}}
)");
  }

  RunResult Weir(std::vector<std::string> words, const std::vector<std::string>& env = {}) {
    words.insert(words.begin(), Program());
    std::vector<std::string> all = {"WEIR_URL=http://127.0.0.1:" + std::to_string(port_)};
    all.insert(all.end(), env.begin(), env.end());
    return RunProgram(words, {.env = all});
  }
  std::string File(const std::string& text) { return dir_.Write("given.json", text).string(); }
  /// Assigns an event "e" of config "bank", alone in its window.
  void AssignOne() {
    ASSERT_EQ(Weir({"slots", "config", "set", "bank", "--window", "4s", "--max", "10"}).exit_code,
              kOk);
    ASSERT_EQ(Weir({"slots", "assign", "e", "--config", "bank", "--at", "2090-01-01T00:00:00Z"})
                  .exit_code,
              kOk);
  }
};

TEST_F(Details, WhatCannotBeUndoneNamesAllThatCan) {
  AssignOne();
  ASSERT_EQ(Weir({"slots", "reschedule", "e", "--at", "2090-01-02T00:00:00Z"}).exit_code, kOk);
  const std::string latest = Weir({"audit", "--limit", "1", "--json"}).output;
  const std::string id = latest.substr(7, latest.find(',') - 7);  // [{"id":2,
  const RunResult undo = Weir({"audit", "--undo", id});
  EXPECT_EQ(undo.exit_code, kRefused);
  EXPECT_THAT(undo.error_output,
              HasSubstr("'slot.reschedule' cannot be undone; only changes to policies, slot "
                        "configs, user limits and preferences can"));
}

TEST_F(Details, AnUndoByNameSaysWhereTheNumbersAre) {
  EXPECT_THAT(
      Weir({"policy", "undo", "free-42"}).error_output,
      StartsWith("weir: change: expected a number of at least 1, got 'free-42'; see `weir audit "
                 "free-42`\n"));
  EXPECT_THAT(
      Weir({"policy", "rollback", "p", "last"}).error_output,
      StartsWith("weir: version: expected a number of at least 1, got 'last'; see `weir policy "
                 "history`\n"));
}

TEST_F(Details, TheAuditLogShowsWhatWasMade) {
  Weir({"policy", "apply", File(R"({"key":"p","type":"TOKEN_BUCKET","capacity":7})")});
  EXPECT_THAT(Weir({"audit", "p"}).output,
              HasSubstr("policy:p  type TOKEN_BUCKET, capacity 7, refillRate 10\n"));
  ASSERT_EQ(Weir({"notify", "config", "u1", "--limit", "3", "--window", "60m"}).exit_code, kOk);
  EXPECT_THAT(Weir({"audit", "u1"}).output, HasSubstr("notify:u1  rateLimit 3"));
  AssignOne();
  ASSERT_EQ(Weir({"slots", "reschedule", "e", "--at", "2090-01-02T00:00:00Z"}).exit_code, kOk);
  EXPECT_THAT(Weir({"audit"}).output, ContainsRegex("slot.reschedule .*2090-01-02T00:00:00"));
  Weir({"check", "k", "--cost", "100"});
  ASSERT_EQ(Weir({"reset", "k"}).exit_code, kOk);
  EXPECT_THAT(Weir({"audit", "k"}).output, ContainsRegex("key.reset +key:k\n"));
}

TEST_F(Details, AReplacedPolicyHasNothingLeft) {
  const std::string told = Weir({"explain", "--domain", "api", "-e", "user=vip"}).output;
  EXPECT_THAT(told, ContainsRegex("any +fixed_window[^)]*[)] +-  "));
  EXPECT_THAT(told, ContainsRegex("vip +fixed_window[^)]*[)] +5  "));
}

TEST_F(Details, StatusCountsReloadsFromTheStart) {
  EXPECT_THAT(Weir({"status"}).output, ContainsRegex("\nreloads +0\n"));
}

TEST_F(Details, AnEmptyTopSaysHowOldItIs) {
  EXPECT_THAT(Weir({"top", "--once", "--kind", "shadow"}).output,
              HasSubstr("(none; counts are up to a second old)\n"));
}

TEST_F(Details, OneIsNotMany) {
  AssignOne();
  const std::string feed =
      dir_.Write("feed.csv", "eventId,requestedTime\nx,2090-01-01T00:00:00Z\n").string();
  EXPECT_THAT(Weir({"slots", "import", feed, "--config", "bank", "--quiet"}).output,
              StartsWith("1 event: 1 new"));
  EXPECT_THAT(Weir({"slots", "forecast", "--config", "bank", "--count", "1", "--at",
                    "2091-01-01T00:00:00Z"})
                  .output,
              AllOf(StartsWith("1 event requested"), HasSubstr("would take 1 window of")));
  EXPECT_THAT(Weir({"slots", "verify"}).output, ContainsRegex("windows?, 2 slots, 0 problems\n"));
}

TEST_F(Details, MessagesBeginAlike) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"serve", "--http", "nowhere"},
        {"serve", "--store", "mongodb://localhost/x"},
        {"proxy", "--listen", "nowhere"},
        {"slots", "forecast", "--config", "c", "--count", "1", "--at", "soon"},
        {"slots", "config", "set", "c", "--window", "4", "--max", "1"}}) {
    const RunResult wrong = Weir(words);
    EXPECT_NE(wrong.exit_code, kOk) << words[0];
    EXPECT_THAT(wrong.error_output, StartsWith("weir: ")) << words[0];
    EXPECT_THAT(wrong.error_output, Not(StartsWith("weir: configuration"))) << words[0];
  }
  EXPECT_THAT(Weir({"serve", "--store", "mongodb://localhost/x"}).error_output,
              HasSubstr("got 'mongodb://…'"));
  EXPECT_THAT(Weir({"slots", "config", "set", "c", "--window", "4", "--max", "1"}).error_output,
              HasSubstr("--window 4: write a number with a unit"));
  EXPECT_THAT(Weir({"status", "--key-file", dir_.Write("empty.key", "").string()}).error_output,
              HasSubstr("empty.key: its first line is empty"));
  EXPECT_THAT(Weir({"status", "--key-file", (dir_ / "none.key").string()}).error_output,
              HasSubstr("none.key: cannot be read"));
}

TEST_F(Details, TheHelpOfServeShowsWhichOptionsTakeValues) {
  const std::string help = Weir({"serve", "--help"}).output;
  EXPECT_THAT(help, AllOf(HasSubstr("--http VALUE  "), Not(HasSubstr("[]"))));
  EXPECT_THAT(help, ContainsRegex("--lenient .VALUE. +Skip unknown"));
}

}  // namespace
}  // namespace weir::test
