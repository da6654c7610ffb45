// Requests that name no domain keep their limits when policies of other domains are created.

#include "e2e/service/fixture.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kLogins = R"(
domain: api
policies:
  - {name: login, match: {user: "*"}, quota: {fixed_window: {limit: 5, window: 100d}}}
)";

class Domains : public ServiceTest {
 protected:
  std::string Checked() { return Check(R"({"descriptors":[{"user":"z"}]})").body; }
  std::string Created(const std::string& key, const std::string& more) {
    HttpClient client = Client();
    const HttpResponse created = client.Post(
        "/admin/policies", R"({"key":")" + key +
                               R"(","type":"FIXED_WINDOW","capacity":500,"windowSeconds":60,)" +
                               R"("match":{"tenant":"acme"})" + more + "}");
    EXPECT_EQ(created.status, 201);
    return created.body;
  }
};

TEST_F(Domains, APolicyWithoutOneBelongsWhereRequestsWithoutOneDo) {
  ServePolicies(kLogins);
  EXPECT_THAT(Checked(), HasSubstr(R"("limit":5,"remaining":4)"));
  EXPECT_THAT(Created("one-tenant", ""),
              AllOf(HasSubstr(R"("domain":"api")"), Not(HasSubstr("warnings"))));
  EXPECT_THAT(Checked(), HasSubstr(R"("limit":5,"remaining":3)"));
  EXPECT_THAT(Check(R"({"descriptors":[{"tenant":"acme"}]})").body, HasSubstr(R"("limit":500)"));
}

TEST_F(Domains, OneMoreTakesNothingFromThatOfTheFiles) {
  ServePolicies(kLogins);
  EXPECT_THAT(Created("shop", R"(,"domain":"shop")"), Not(HasSubstr("warnings")));
  EXPECT_THAT(Checked(), HasSubstr(R"("limit":5)"));
}

TEST_F(Domains, WhoMovesRequestsToAnotherOneIsTold) {
  ServePolicies(kLogins);
  EXPECT_THAT(Created("moves", R"(,"domain":"default")"),
              HasSubstr("requests that name no domain belonged to 'api' and belong to 'default'"));
  EXPECT_THAT(Checked(), HasSubstr(R"("limit":0)"));
  EXPECT_TRUE(WaitUntil([&] {
    return weir_->process().error_output().find(
               R"(belong to another one now before="api" now="default")") != std::string::npos;
  }));
  HttpClient client = Client();
  EXPECT_THAT(client.Get("/admin/explain?user=z").body,
              AllOf(HasSubstr(R"("domain":"api")"),
                    HasSubstr("a check that names no domain belongs to 'default'")));
  EXPECT_THAT(client.Get("/admin/explain?domain=api&user=z").body, Not(HasSubstr("note")));
}

TEST_F(Domains, AStartSaysThatTheyHaveMovedSinceTheLastOne) {
  const auto warned = [this] {
    return weir_->process().error_output().find("belong to another one now") != std::string::npos;
  };
  ServePolicies(kLogins);
  EXPECT_THAT(Checked(), HasSubstr(R"("limit":5)"));
  EXPECT_EQ(weir_->process().Terminate(), 0);
  // Before the next start a second file is added, with policies of `default`.
  const auto more = dir_.Write("more.yaml", R"(
policies:
  - {name: tenants, match: {tenant: "*"}, quota: {fixed_window: {limit: 500, window: 1h}}}
)");
  Serve({"--policies", (dir_ / "policies.yaml").string(), "--policies", more.string()});
  EXPECT_THAT(weir_->process().error_output(),
              HasSubstr(R"(belong to another one now before="api" now="default")"));
  EXPECT_EQ(weir_->process().Terminate(), 0);
  // Logged once: the next start changes nothing.
  Serve({"--policies", (dir_ / "policies.yaml").string(), "--policies", more.string()});
  EXPECT_THAT(Checked(), HasSubstr(R"("limit":0)"));
  EXPECT_FALSE(warned());
}

}  // namespace
}  // namespace weir::test
