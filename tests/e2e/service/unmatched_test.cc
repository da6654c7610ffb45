// `unmatched: deny`: requests to which no policy applies are denied.

#include "e2e/service/fixture.h"
#include "support/nginx_server.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kPolicies = R"(
policies:
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 5, window: 100d}}}
)";
constexpr std::string_view kReason =
    "No policy applies to this request, and such requests are refused";

class Unmatched : public ServiceTest {};

TEST_F(Unmatched, AnswersSaySo) {
  ServePolicies(kPolicies);
  EXPECT_THAT(Check(R"({"domain":"nope","descriptors":[{"user":"z"}]})").body,
              AllOf(HasSubstr(R"("allowed":true)"), HasSubstr(R"("matched":false)")));
  EXPECT_THAT(Check(R"({"descriptors":[{"user":"z"}]})").body, Not(HasSubstr("matched")));
}

TEST_F(Unmatched, ChecksAreRefused) {
  const auto file = dir_.Write("policies.yaml", kPolicies);
  Serve({"--policies", file.string(), "--unmatched", "deny"});
  EXPECT_THAT(Check(R"({"descriptors":[{"usr":"z"}]})").body,
              HasSubstr(R"("allowed":false,"limit":0,"remaining":0,"retryAfterMs":0,)"
                        R"("resetAfterMs":0,"policy":"","matched":false,"never":true)"));
  EXPECT_EQ(Check(R"({"descriptors":[{"usr":"z"}]})", "/v1/check?http_status=1").status, 429);
  EXPECT_THAT(Check(R"({"descriptors":[{"user":"z"}]})").body, HasSubstr(R"("allowed":true)"));
  EXPECT_THAT(Check(R"({"key":"z"})").body, HasSubstr(R"("policy":"default")"));
  HttpClient client = Client();
  EXPECT_THAT(client.Get("/admin/explain?usr=z").body,
              HasSubstr("refused: no policy applies (unmatched: deny)"));
  EXPECT_THAT(client.Get("/metrics").body, HasSubstr("weir_unmatched_total 2\n"));
}

TEST_F(Unmatched, TheDefaultPolicyDoesNotAdmitThemAtAuth) {
  const auto file = dir_.Write("policies.yaml", kPolicies);
  Serve({"--policies", file.string(), "--unmatched", "deny"});
  HttpClient client = Client();
  const HttpResponse refused = client.Get("/v1/auth");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.body, kReason);
  EXPECT_EQ(client.Get("/v1/auth?deny_status=403").status, 403);
  EXPECT_EQ(client.Get("/v1/auth", {{"X-User-Id", "z"}}).status, 200);
  EXPECT_THAT(client.Get("/admin/explain?ip=127.0.0.1").body,
              AllOf(HasSubstr("refused: no policy applies (unmatched: deny)"),
                    Not(HasSubstr(R"("note")"))));
  EXPECT_THAT(client.Get("/metrics").body, HasSubstr("weir_unmatched_total 2\n"));
  // A policy for exactly this address does apply.
  ASSERT_EQ(client
                .Post("/admin/policies",
                      R"({"key":"127.0.0.1","type":"TOKEN_BUCKET","capacity":9,"refillRate":1})")
                .status,
            201);
  EXPECT_EQ(client.Get("/v1/auth").Header("X-RateLimit-Limit"), "9");
}

TEST_F(Unmatched, ADefaultPolicyThatIsWrittenDownAdmitsThemAtAuth) {
  // A default policy written out like the built-in one.
  const auto config = dir_.Write("weir.yaml",
                                 "unmatched: deny\ndefault_policy: {quota: {token_bucket: "
                                 "{capacity: 100, refill_per_second: 10}}}\n");
  Serve({"--config", config.string()});
  HttpClient client = Client();
  EXPECT_EQ(client.Get("/v1/auth").Header("X-RateLimit-Limit"), "100");
  EXPECT_THAT(client.Get("/admin/explain?ip=127.0.0.1").body, HasSubstr(R"("policy":"default")"));
}

TEST_F(Unmatched, TheBuiltInPolicyOfTheProxyDoesNotAdmitThem) {
  NginxServer nginx("location / { return 200 'hello'; }");
  const auto status = [&](std::string_view settings) {
    const auto config = dir_.Write("weir.yaml", settings);
    WeirProcess proxy({"proxy", "--config", config.string(), "--upstream",
                       "http://127.0.0.1:" + std::to_string(nginx.port()), "--data",
                       (dir_ / "data").string(), "--listen", "127.0.0.1:0"});
    return HttpClient(proxy.Port("proxy")).Get("/").status;
  };
  EXPECT_EQ(status("{}"), 200);
  EXPECT_EQ(status("unmatched: deny\n"), 429);
  EXPECT_EQ(status("unmatched: deny\ndefault_policy: {unlimited: true}\n"), 200);
}

TEST_F(Unmatched, TheProxyRefusesThem) {
  NginxServer nginx("location / { return 200 'hello'; }");
  const auto config = dir_.Write("weir.yaml", "unmatched: deny\npolicies: [policies.yaml]\n");
  dir_.Write("policies.yaml", kPolicies);
  WeirProcess proxy({"proxy", "--config", config.string(), "--upstream",
                     "http://127.0.0.1:" + std::to_string(nginx.port()), "--data",
                     (dir_ / "data").string(), "--listen", "127.0.0.1:0", "--user-header",
                     "X-User"});
  HttpClient client(proxy.Port("proxy"));
  const HttpResponse refused = client.Get("/");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.body, kReason);
  EXPECT_EQ(refused.Header("Retry-After"), "");
  EXPECT_EQ(client.Get("/", {{"X-User", "z"}}).body, "hello");
}

}  // namespace
}  // namespace weir::test
