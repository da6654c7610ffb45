// From shadow to enforced, for a policy from a file: through the admin API and the command
// line.

#include "e2e/service/fixture.h"
#include "support/paths.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kFile = R"(domain: api
policies:
  - {name: trial, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 100d}}, shadow: true}
)";
constexpr const char* kOverride = R"({"key":"api/trial","type":"OVERRIDE","domain":"api")";

class Override : public ServiceTest {
 protected:
  HttpResponse Ask(const char* method, const std::string& target, const std::string& body = {}) {
    HttpClient client = Client();
    return client.Send(method, target, body, {{"Content-Type", "application/json"}});
  }
  HttpResponse Put(const std::string& more, bool first) {
    return first ? Ask("POST", "/admin/policies", kOverride + more)
                 : Ask("PUT", "/admin/policies/api%2Ftrial", kOverride + more);
  }
  /// Whether the policy denies requests: its limit is 1.
  bool Enforced(const std::string& user) {
    const std::string body =
        R"({"domain":"api","descriptors":[{"user":")" + user + R"("}],"cost":2})";
    return Check(body).body.find("\"allowed\":false") != std::string::npos;
  }
  RunResult Weir(std::vector<std::string> words) {
    words.insert(words.begin(), {Program(), "policy"});
    return RunProgram(words, {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(port_)}});
  }
  std::string FilePolicies() { return Ask("GET", "/admin/policies?source=file").body; }
};

TEST_F(Override, IsInForceAtOnceVersionedAndUndone) {
  ServePolicies(kFile);
  EXPECT_FALSE(Enforced("a"));
  EXPECT_THAT(FilePolicies(), Not(HasSubstr("override")));
  const HttpResponse made = Put(R"(,"shadow":false})", true);
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_TRUE(Enforced("a"));
  EXPECT_THAT(FilePolicies(),
              AllOf(HasSubstr(R"("shadow":false,)"), HasSubstr(R"("shadowInFile":true)"),
                    HasSubstr(R"("override":{"id":1,"policyKey":"api/trial","type":"OVERRIDE",)"
                              R"("domain":"api","shadow":false,"version":1})")));
  EXPECT_THAT(Ask("GET", "/admin/explain?bucket=api/trial%7Cuser:a").body,
              HasSubstr("enforced by an override"));
  EXPECT_EQ(Put(R"(,"shadow":false})", true).status, 409);
  ASSERT_EQ(Put(R"(,"shadow":true})", false).status, 200);
  EXPECT_FALSE(Enforced("a"));
  EXPECT_THAT(Weir({"history", "trial"}).error_output,
              HasSubstr("404: this policy is in a file; its changes are under api/trial: weir "
                        "policy history api/trial\n"));
  EXPECT_EQ(Ask("POST", "/admin/policies/api%2Ftrial/rollback", R"({"version":1})").status, 200);
  EXPECT_TRUE(Enforced("a"));
  // These were changes 1 to 3; the fourth undoes the third, the fifth deletes.
  EXPECT_EQ(Ask("POST", "/admin/audit/3/undo").status, 200);
  EXPECT_FALSE(Enforced("a"));
  EXPECT_EQ(Ask("DELETE", "/admin/policies/api%2Ftrial").status, 204);
  EXPECT_EQ(Ask("POST", "/admin/audit/5/undo").status, 200);
  EXPECT_EQ(Ask("DELETE", "/admin/policies/api%2Ftrial").status, 204);
  EXPECT_FALSE(Enforced("a"));
  EXPECT_THAT(FilePolicies(), Not(HasSubstr("override")));
}

TEST_F(Override, EndsByItself) {
  ServePolicies(kFile);
  ASSERT_EQ(Put(R"(,"shadow":false,"expiresAt":")" + Soon() + "\"}", true).status, 201);
  EXPECT_TRUE(WaitUntil([&] { return !Enforced("a"); }));
  EXPECT_THAT(Ask("GET", "/admin/policies/api%2Ftrial").body, HasSubstr(R"("source":"file")"));
  EXPECT_THAT(Ask("GET", "/admin/audit?limit=1").body, HasSubstr("policy.expire"));
}

TEST_F(Override, IsRefusedForWhatNoFileHas) {
  ServePolicies(kFile);
  const HttpResponse stray =
      Ask("POST", "/admin/policies", R"({"key":"web/trial","type":"OVERRIDE","domain":"web"})");
  EXPECT_EQ(stray.status, 404);
  EXPECT_THAT(stray.body, HasSubstr("no policy file has a policy 'trial' in domain 'web'"));
  const HttpResponse more = Put(R"(,"capacity":5})", true);
  EXPECT_EQ(more.status, 400);
  EXPECT_THAT(more.body, HasSubstr("can set only shadow"));
  EXPECT_EQ(Ask("POST", "/admin/policies", R"({"key":"trial","type":"OVERRIDE"})").status, 400);
}

TEST_F(Override, StaysThroughAReloadAndIsNoChangeOfTheFile) {
  const auto file = ServePolicies(kFile);
  ASSERT_EQ(Put(R"(,"shadow":false})", true).status, 201);
  const auto audit = [&] { return Ask("GET", "/admin/audit").body; };
  // The limit becomes 3; what the override sets is not attributed to the file.
  std::string text = kFile;
  text.replace(text.find("limit: 1"), 8, "limit: 3");
  dir_.Write("policies.yaml", text);
  ASSERT_TRUE(WaitUntil([&] { return audit().find("policy.file") != std::string::npos; }));
  EXPECT_THAT(audit(), HasSubstr(R"("capacity":3)"));
  EXPECT_THAT(FilePolicies(), AllOf(HasSubstr(R"("shadow":false,)"), HasSubstr("override")));
  const std::string changes = audit();
  const std::string entry = changes.substr(changes.find("policy.file"));
  const std::string of_file = entry.substr(0, entry.find("policy.create"));
  EXPECT_THAT(of_file, AllOf(HasSubstr(R"("shadow":true)"), Not(HasSubstr(R"("shadow":false)"))));
  // If a policy is removed from the file, its override has no effect, and this is reported.
  dir_.Write("policies.yaml", "policies: []\n");
  EXPECT_TRUE(WaitUntil([&] {
    return Ask("GET", "/admin/status").body.find(R"("setAside":["api/trial"])") !=
           std::string::npos;
  }));
}

TEST_F(Override, ANameThatAFileHasInAnotherDomainIsWarnedAbout) {
  ServePolicies(kFile);
  const HttpResponse made =
      Ask("POST", "/admin/policies", R"({"key":"trial","type":"FIXED_WINDOW","capacity":3})");
  EXPECT_EQ(made.status, 201);
  EXPECT_THAT(made.body, HasSubstr("a file's policy in domain 'api' has this name, too"));
  const RunResult shadow = Weir({"shadow", "trial"});
  EXPECT_EQ(shadow.exit_code, 0);
  EXPECT_THAT(shadow.error_output, HasSubstr("a file's policy in domain 'api' has this name, too"));
  EXPECT_EQ(Weir({"enforce", "trial", "--domain", "api"}).exit_code, 0);
  EXPECT_TRUE(Enforced("a"));
}

TEST_F(Override, IsOneWordOnTheCommandLine) {
  ServePolicies(kFile);
  const RunResult enforced = Weir({"enforce", "trial", "--expires", "2h"});
  EXPECT_EQ(enforced.exit_code, 0) << enforced.error_output;
  EXPECT_EQ(
      enforced.output,
      "trial is enforced, by override; to return to the file: weir policy delete api/trial\n");
  EXPECT_TRUE(Enforced("a"));
  const RunResult log = RunProgram({Program(), "audit", "--limit", "1"},
                                   {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(port_)}});
  EXPECT_THAT(log.output, HasSubstr("type OVERRIDE, domain api, shadow false"));
  EXPECT_THAT(Weir({"list"}).output,
              AllOf(HasSubstr("enforced by override"), HasSubstr("OVERRIDE")));
  EXPECT_THAT(Weir({"get", "api/trial"}).output, HasSubstr("expiresAt"));
  EXPECT_EQ(Weir({"shadow", "api/trial", "--expires", "never"}).exit_code, 0);
  EXPECT_FALSE(Enforced("a"));
  EXPECT_THAT(Weir({"get", "api/trial"}).output, Not(HasSubstr("expiresAt")));
  EXPECT_EQ(Weir({"delete", "api/trial"}).exit_code, 0);
  EXPECT_EQ(Weir({"shadow", "trial"}).exit_code, 0);  // its file says so
  EXPECT_THAT(FilePolicies(), Not(HasSubstr("override")));
  EXPECT_EQ(Weir({"enforce", "nobody"}).exit_code, 4);
  EXPECT_EQ(Weir({"enforce", "trial", "--domain", "web"}).exit_code, 4);
  EXPECT_EQ(Weir({"enforce", "trial", "--expires", "soon"}).exit_code, 2);
  // The same commands for a policy of the admin API.
  ASSERT_EQ(Ask("POST", "/admin/policies",
                R"({"key":"k","type":"FIXED_WINDOW","capacity":3,"shadow":true})")
                .status,
            201);
  EXPECT_EQ(Weir({"enforce", "k"}).output, "k is enforced\n");
  EXPECT_THAT(Ask("GET", "/admin/policies/k").body,
              AllOf(HasSubstr(R"("capacity":3,)"), HasSubstr(R"("shadow":false)")));
  EXPECT_THAT(Weir({"shadow", "k", "--json"}).output, HasSubstr(R"("shadow":true)"));
}

TEST_F(Override, AsksForTheDomainWhereSeveralHaveTheName) {
  const auto web = dir_.Write("web.yaml", std::string(kFile).replace(8, 3, "web"));
  const auto api = dir_.Write("api.yaml", kFile);
  Serve({"--policies", api.string(), "--policies", web.string()});
  const RunResult unclear = Weir({"enforce", "trial"});
  EXPECT_EQ(unclear.exit_code, 2);
  EXPECT_THAT(unclear.error_output, HasSubstr("give --domain"));
  EXPECT_EQ(Weir({"enforce", "trial", "--domain", "web"}).exit_code, 0);
  EXPECT_FALSE(Enforced("a"));  // that of api
  EXPECT_EQ(Weir({"enforce", "trial", "--domain", "api"}).exit_code, 0);
  EXPECT_TRUE(Enforced("a"));
}

}  // namespace
}  // namespace weir::test
