// weir keys finds a customer's buckets, whatever policy they belong to.

#include "e2e/cli/exit_codes.h"
#include "e2e/service/fixture.h"
#include "support/paths.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kPolicies = R"(
domain: api
policies:
  - name: per-user
    match: { user: "*" }
    quota: { fixed_window: { limit: 2, window: 100d } }
)";

class CliKeys : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    Serve({"--policies", dir_.Write("policies.yaml", kPolicies).string()});
    for (const char* user : {"77", "77", "177", "8"}) {
      ASSERT_EQ(Weir({"check", "-e", std::string("user=") + user}).exit_code, kOk);
    }
    ASSERT_EQ(Weir({"check", "77"}).exit_code, kOk);
    ASSERT_EQ(Weir({"check", "a|b"}).exit_code, kOk);
  }

  RunResult Weir(std::vector<std::string> words) {
    words.insert(words.begin(), Program());
    return RunProgram(words, {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(port_)}});
  }
};

TEST_F(CliKeys, FindsACustomerInAllBuckets) {
  const RunResult found = Weir({"keys", "77"});
  EXPECT_EQ(found.exit_code, kOk) << found.error_output;
  EXPECT_THAT(found.output, AllOf(StartsWith("bucket "), HasSubstr("api/per-user|user:77 "),
                                  HasSubstr("api/per-user|user:177 "), HasSubstr("key|77 ")));
  EXPECT_THAT(found.output, Not(HasSubstr("user:8 ")));
  EXPECT_EQ(found.error_output, "");
}

TEST_F(CliKeys, ShowsThoseThatAreLimited) {
  EXPECT_THAT(Weir({"keys", "77", "--limited"}).output,
              AllOf(HasSubstr("api/per-user|user:77  limited  2 of 2  "),
                    Not(HasSubstr("user:177")), Not(HasSubstr("key|77"))));
  EXPECT_THAT(Weir({"keys", "177"}).output, HasSubstr("has room  1 of 2  "));
  // 100 days that began a moment ago.
  EXPECT_THAT(Weir({"keys", "177"}).output, HasSubstr(" d "));
}

TEST_F(CliKeys, FindsNamesAsTheyWereBeforeEscapes) {
  EXPECT_THAT(Weir({"keys", "a|b"}).output, HasSubstr("key|a%7Cb"));
}

TEST_F(CliKeys, ListsByPrefixAndSaysWhatItLeavesOut) {
  EXPECT_THAT(Weir({"keys", "--prefix", "api/per-user|"}).output,
              AllOf(HasSubstr("user:8 "), Not(HasSubstr("key|77"))));
  const RunResult first = Weir({"keys", "--limit", "1"});
  EXPECT_EQ(first.exit_code, kOk);
  EXPECT_THAT(first.error_output, HasSubstr("only the first 1 are shown (--limit)"));
  EXPECT_THAT(Weir({"keys", "--json", "--prefix", "key|77"}).output,
              StartsWith(R"([{"bucket":"key|77","key":"77",)"));
}

// A page has 1,000 buckets.
TEST_F(CliKeys, ASearchThatStoppedHasNotFoundThatThereAreNone) {
  HttpClient client = Client();
  for (int i = 0; i < 2; ++i) {
    std::string checks;
    for (int n = 0; n < 600; ++n) {
      checks +=
          (n > 0 ? "," : "") + std::string(R"({"key":"m)") + std::to_string(i * 600 + n) + "\"}";
    }
    ASSERT_EQ(client.Post("/v1/check", R"({"checks":[)" + checks + "]}").status, 200);
  }
  const RunResult stopped = Weir({"keys", "nobody", "--search", "1000"});
  EXPECT_EQ(stopped.exit_code, kRefused);
  EXPECT_EQ(stopped.output, "");
  EXPECT_THAT(stopped.error_output,
              HasSubstr("weir: none found among the first 1,000 buckets searched, and there are "
                        "more (--search, --prefix)\n"));
  EXPECT_EQ(Weir({"keys", "nobody"}).exit_code, kNo);
  // No other matches, but that is not known: the search ends when one is found.
  const RunResult one = Weir({"keys", "api/per-user|user:77", "--limit", "1"});
  EXPECT_EQ(one.exit_code, kOk);
  EXPECT_THAT(one.error_output, HasSubstr("weir: only the first 1 found are shown; the search "
                                          "stopped there, so there may be more (--limit)\n"));
}

TEST_F(CliKeys, SaysIfThereAreNone) {
  const RunResult none = Weir({"keys", "nobody"});
  EXPECT_EQ(none.exit_code, kNo);
  EXPECT_THAT(none.output, HasSubstr("(none)"));
  EXPECT_EQ(Weir({"keys", "nobody", "--json"}).output, "[]\n");
}

}  // namespace
}  // namespace weir::test
