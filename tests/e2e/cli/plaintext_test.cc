// Every command that takes a database URL warns if passwords may cross the network in plaintext.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/child_process.h"
#include "support/paths.h"
#include "support/temp_dir.h"

namespace weir::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// No such host exists, so nothing is sent anywhere.
constexpr const char* kUrl = "postgres://weir:hidden@db.invalid/weir";

std::vector<std::string> Command(const std::vector<std::string>& words) {
  std::vector<std::string> argv = {Program()};
  argv.insert(argv.end(), words.begin(), words.end());
  return argv;
}

/// Standard error of the program until it warns about `setting`, or ends.
std::string Warning(const std::vector<std::string>& words, const std::string& setting) {
  ChildProcess weir(Command(words));
  const std::string text = setting + ": the connection to db.invalid is not verified";
  (void)weir.WaitForError(text);
  weir.Terminate();
  return weir.error_output();
}

class Plaintext : public testing::Test {
 protected:
  void ExpectWarning(std::vector<std::string> words, const std::string& flag) {
    const std::string name = words.front();
    words.insert(words.end(), {flag, kUrl});
    const std::string told = Warning(words, flag);
    EXPECT_THAT(told, HasSubstr(flag + ": the connection to db.invalid is not verified and may be "
                                       "in plaintext"))
        << name;
    EXPECT_THAT(told, Not(HasSubstr("hidden"))) << name;
    tried_.insert(name);
  }

  const TempDir dir_;
  std::set<std::string> tried_ = {"serve", "proxy"};  // these are in stores/start_test.cc
};

/// The commands whose help names a database URL.
std::set<std::string> CommandsWithDatabases() {
  std::set<std::string> found;
  std::istringstream lines(RunProgram(Command({"--help"})).output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    if (!line.starts_with("  ") || !(words >> name) || name.starts_with("-")) continue;
    const RunResult help = RunProgram(Command({name, "--help"}));
    const RunResult all = RunProgram(Command({name, "--help-all"}));
    if ((help.output + all.output).find("postgres://") != std::string::npos) found.insert(name);
  }
  return found;
}

TEST_F(Plaintext, IsWarnedOfByEveryCommandThatIsGivenADatabase) {
  ExpectWarning({"dispatch", "--config", "pay"}, "--store");
  ExpectWarning({"slots", "verify"}, "--store");
  ExpectWarning({"restore"}, "--store");
  ExpectWarning({"sender", "--broker", "kafka://127.0.0.1:1", "--data", dir_ / "sender"},
                "--store");
  for (const char* flag : {"--store", "--policy-store", "--slots-store", "--notify-store"}) {
    ExpectWarning({"migrate"}, flag);
  }
  for (const std::string& command : CommandsWithDatabases()) {
    EXPECT_TRUE(tried_.contains(command)) << command << " is given a database and not in this test";
  }
}

TEST_F(Plaintext, IsNotWarnedOfWhereItWasDecided) {
  const RunResult decided =
      RunProgram(Command({"migrate", "--slots-store", std::string(kUrl) + "?tls=off"}));
  EXPECT_EQ(decided.exit_code, 1);
  EXPECT_THAT(decided.error_output, Not(HasSubstr("plaintext")));
}

}  // namespace
}  // namespace weir::test
