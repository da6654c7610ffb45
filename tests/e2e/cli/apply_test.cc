// weir policy apply: all of a file or nothing of it, and every mistake at its place.

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

class Apply : public ServiceTest {
 protected:
  void SetUp() override { Serve(); }

  RunResult Weir(std::vector<std::string> words) {
    words.insert(words.begin(), Program());
    return RunProgram(
        words, {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(port_), "WEIR_ADMIN_KEY="}});
  }
  std::string File(const std::string& text, const std::string& name) {
    return dir_.Write(name, text).string();
  }
  /// What `weir policy apply` says of a file that cannot be read as it should.
  std::string Wrong(const std::string& text, const std::string& name) {
    const RunResult run = Weir({"policy", "apply", File(text, name)});
    EXPECT_EQ(run.exit_code, kUsage) << run.error_output;
    EXPECT_EQ(run.output, "");
    return run.error_output;
  }
  std::string Stored() { return Client().Get("/admin/policies?source=admin").body; }
};

constexpr const char* kThree = R"(policies:
  - {name: a, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 1m}}}
  - {name: b, match: {user: "*"}, store: nowhere, quota: {fixed_window: {limit: 1, window: 1m}}}
  - {name: c, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 1m}}}
)";

TEST_F(Apply, NothingIsAppliedUnlessTheServiceWouldTakeAll) {
  const std::string file = File(kThree, "three.yaml");
  for (const std::vector<std::string>& words : {std::vector<std::string>{"policy", "apply", file},
                                                {"policy", "apply", "--dry-run", file},
                                                {"policy", "diff", file}}) {
    const RunResult run = Weir(words);
    EXPECT_EQ(run.exit_code, kUsage) << run.error_output;
    EXPECT_THAT(run.error_output, AllOf(HasSubstr("weir: " + file + ":3:5: b: 400: "),
                                        HasSubstr("unknown store 'nowhere'")));
    EXPECT_EQ(Stored(), "[]");
  }
  EXPECT_THAT(Weir({"policy", "apply", file}).error_output,
              EndsWith("weir: nothing was applied\n"));
}

TEST_F(Apply, EveryRefusalIsNamed) {
  std::string text = "[";
  for (int i = 0; i < 25; ++i) {
    text += (i > 0 ? "," : "") + std::string(R"({"key":"k)") + std::to_string(i) +
            R"(","type":"TOKEN_BUCKET","capacity":5,"refillRate":1,"store":"nowhere"})";
  }
  const RunResult run = Weir({"policy", "apply", File(text + "]", "many.json")});
  EXPECT_EQ(run.exit_code, kUsage);
  EXPECT_THAT(run.error_output,
              AllOf(StartsWith("weir: k0: 400: "), HasSubstr("\nweir: k19: 400: "),
                    Not(HasSubstr("k20")), HasSubstr("\nweir: and 5 others\n")));
}

TEST_F(Apply, AKeyThatIsThereTwiceIsNamedWithBothPlaces) {
  EXPECT_THAT(Wrong("[{\"key\":\"a\",\"type\":\"TOKEN_BUCKET\"},\n {\"type\":\"TOKEN_BUCKET\",\n  "
                    "\"key\":\"a\"}]",
                    "twice.json"),
              AllOf(HasSubstr("twice.json:3:9: policy 2: key: 'a' is already used by "),
                    EndsWith("twice.json:1:9\n")));
  EXPECT_THAT(Wrong(R"(policies:
  - {name: a, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 1m}}}
  - {name: a, match: {user: "*"}, quota: {fixed_window: {limit: 2, window: 1m}}}
)",
                    "twice.yaml"),
              AllOf(HasSubstr("twice.yaml:3:5: policy name 'a' is already used by "),
                    EndsWith("twice.yaml:2:5\n")));
  EXPECT_THAT(Wrong(R"(policies:
  - {name: x, domain: d1, policies: []}
)",
                    "none.yaml"),
              StartsWith("weir: "));
  EXPECT_EQ(Stored(), "[]");
}

TEST_F(Apply, EveryMistakeOfAFileHasItsLine) {
  std::string text = "policies:\n";
  for (int i = 0; i < 9; ++i) {
    text += "  - {name: p" + std::to_string(i) + ", match: {user: \"*\"}, qota: 1}\n";
  }
  const std::string said = Wrong(text, "nine.yaml");
  const RunResult checked = Weir({"config", "check", (dir_ / "nine.yaml").string()});
  std::istringstream lines(checked.error_output);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_THAT(said, HasSubstr("weir: " + line + "\n"));
  }
  EXPECT_GE(count, 9);
}

TEST_F(Apply, AMistakeInJsonIsFoundAtItsPlace) {
  const auto policy = [](const std::string& key, const std::string& rest) {
    return R"({"key":")" + key + R"(","type":"TOKEN_BUCKET",)" + rest + "}";
  };
  const std::string good = policy("a", R"("capacity":5)");
  EXPECT_THAT(Wrong("[" + good + ",\n " + policy("b", R"("capacity": 5OO)") + "]", "number.json"),
              HasSubstr("number.json:2:47: not valid JSON: '5OO' is not a number\n"));
  EXPECT_THAT(Wrong("[" + good + "\n " + good + "]", "comma.json"),
              HasSubstr("comma.json:2:2: not valid JSON: expected ',' or ']'\n"));
  EXPECT_THAT(Wrong(R"({"key":"a","capacity":5OO})", "one.json"),
              HasSubstr("one.json:1:23: not valid JSON: '5OO' is not a number\n"));
  const std::string wrong = Wrong("[" + policy("a", R"("capacity":"many")") + ",\n" + good + ",\n" +
                                      policy("c", "\n\"refillRate\":-1") + "]",
                                  "fields.json");
  EXPECT_THAT(wrong, AllOf(HasSubstr("fields.json:1:46: policy 1: capacity: "),
                           HasSubstr("fields.json:4:14: policy 3: refillRate: ")));
  std::string many = "[";
  for (int i = 0; i < 25; ++i) many += std::string(i > 0 ? "," : "") + R"({"type":"NONE"})";
  EXPECT_THAT(Wrong(many + "]", "many.json"),
              AllOf(HasSubstr("policy 20: "), Not(HasSubstr("policy 21: ")),
                    EndsWith("many.json: and 5 more policies are wrong\n")));
  EXPECT_EQ(Stored(), "[]");
  // A policy file of YAML may begin with a brace as well.
  EXPECT_EQ(Weir({"policy", "apply",
                  File("{policies: [{name: y, match: {}, quota: {fixed_window: {limit: 1, window: "
                       "1m}}}]}",
                       "flow.yaml")})
                .exit_code,
            kOk);
}

TEST_F(Apply, TheDefaultPolicyAndAKeyOfItsNameAreDifferent) {
  const RunResult enforced = Weir({"policy", "enforce", "default"});
  EXPECT_EQ(enforced.exit_code, kRefused);
  EXPECT_THAT(enforced.error_output,
              HasSubstr("'default' is the default policy, which is always enforced"));
  EXPECT_THAT(Weir({"policy", "shadow", "default"}).error_output, HasSubstr("set default_policy"));
  const RunResult applied =
      Weir({"policy", "apply", File(R"({"key":"default","type":"TOKEN_BUCKET"})", "default.json")});
  EXPECT_EQ(applied.exit_code, kOk);
  EXPECT_THAT(applied.error_output,
              HasSubstr("weir: warning: default: this limits the bare key 'default' only; for "));
  const std::string list = Weir({"policy", "list"}).output;
  EXPECT_THAT(list,
              AllOf(HasSubstr("key default"), HasSubstr("keys without a policy of their own")));
  EXPECT_EQ(Weir({"policy", "shadow", "default"}).exit_code, kOk);
}

TEST_F(Apply, ACheckChangesNothingAndNeedsOnlyToRead) {
  HttpClient client = Client();
  const HttpResponse fine =
      client.Post("/admin/policies/p/check",
                  R"({"type":"TOKEN_BUCKET","capacity":7,"refillRate":1,"buckets":9})");
  EXPECT_EQ(fine.status, 200);
  EXPECT_THAT(fine.body,
              AllOf(HasSubstr(R"("policyKey":"p")"), HasSubstr(R"("warnings":["buckets)")));
  EXPECT_EQ(client.Post("/admin/policies/p/check", R"({"type":"NONE"})").status, 400);
  EXPECT_EQ(client.Post("/admin/policies/p/check", R"({"key":"q","type":"TOKEN_BUCKET"})").status,
            400);
  EXPECT_EQ(
      client
          .Post("/admin/policies/d%2Ff/check", R"({"type":"OVERRIDE","domain":"d","shadow":true})")
          .status,
      404);
  EXPECT_EQ(Stored(), "[]");
  Serve(
      {"--data", (dir_ / "keys").string(), "--admin-key", "an-administrators-key", "--config",
       File("access: {keys: [{name: r, roles: [read], key: a-readers-key-of-tests}]}", "k.yaml")});
  const auto with_key = [&](const char* method, const char* target) {
    return Client()
        .Send(method, target, R"({"type":"TOKEN_BUCKET"})",
              {{"X-API-Key", "a-readers-key-of-tests"}})
        .status;
  };
  EXPECT_EQ(with_key("POST", "/admin/policies/p/check"), 200);
  EXPECT_EQ(with_key("PUT", "/admin/policies/p%2Fcheck"), 403);
  EXPECT_EQ(with_key("DELETE", "/admin/policies/p%2Fcheck"), 403);
  EXPECT_EQ(with_key("POST", "/admin/policies/p/rollback"), 403);
}

}  // namespace
}  // namespace weir::test
