// What the commands print, in detail: numbers that mean something, names that other commands take.

#include "e2e/cli/exit_codes.h"
#include "e2e/service/fixture.h"
#include "support/paths.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;

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
  /// An event "e" of config "bank", in a window of its own.
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

}  // namespace
}  // namespace weir::test
