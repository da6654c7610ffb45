// GET /v1/auth behind proxies that forward the client's own fields, as all of them do: only the
// proxy may decide which path is checked.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "e2e/service/fixture.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;

class AuthTarget : public ServiceTest {
 protected:
  void ServeWith(const std::string& target) {
    const auto policies = dir_.Write("policies.yaml", R"(
policies:
  - name: pay
    match: { route: /v1/pay }
    quota: { fixed_window: { limit: 1, window: 100d } }
  - name: posts
    match: { route: /v1/posts, method: POST }
    quota: { fixed_window: { limit: 1, window: 100d } }
)");
    const auto config =
        dir_.Write("weir.yaml", target.empty() ? "{}" : "auth: { target: " + target + " }\n");
    Serve({"--policies", policies.string(), "--config", config.string()});
  }

  HttpResponse Ask(const HttpHeaders& headers, std::string_view target = "/v1/auth") {
    HttpClient client = Client();
    return client.Get(target, headers);
  }

  int Passed(const HttpHeaders& headers, int of = 50) {
    int passed = 0;
    for (int i = 0; i < of; ++i) passed += Ask(headers).status == 200 ? 1 : 0;
    return passed;
  }
};

TEST_F(AuthTarget, AClientsPairNeverReplacesTheProxys) {
  ServeWith("");
  // A proxy like Traefik or Caddy sets X-Forwarded-Uri and forwards X-Original-URI.
  EXPECT_LE(Passed({{"X-Forwarded-Uri", "/v1/pay"}, {"X-Original-URI", "/elsewhere"}}), 1);
  // nginx, the other way round.
  EXPECT_LE(Passed({{"X-Original-URI", "/v1/pay"}, {"X-Forwarded-Uri", "/elsewhere"}}), 1);
  // The method of one pair with the path of the other.
  EXPECT_LE(Passed({{"X-Original-Method", "GET"},
                    {"X-Forwarded-Uri", "/v1/posts"},
                    {"X-Forwarded-Method", "POST"}}),
            1);
  EXPECT_LE(Passed({{"X-Original-URI", "/v1/posts"}, {"X-Forwarded-Method", "GET"}}), 0);
}

TEST_F(AuthTarget, BothPairsAreRefusedWithWhatToDo) {
  ServeWith("");
  const HttpResponse both = Ask({{"X-Forwarded-Uri", "/v1/pay"}, {"X-Original-URI", "/elsewhere"}});
  EXPECT_EQ(both.status, 400);
  EXPECT_THAT(both.body, HasSubstr("auth.target"));
  // auth_request treats everything except 401 and 403 as a failure of the service.
  EXPECT_EQ(Ask({{"X-Forwarded-Uri", "/v1/pay"}, {"X-Original-URI", "/elsewhere"}},
                "/v1/auth?deny_status=403")
                .status,
            403);
}

TEST_F(AuthTarget, ADoubledFieldIsRefused) {
  ServeWith("");
  for (const char* name : {"X-Original-URI", "X-Original-Method", "X-Forwarded-Uri",
                           "X-Forwarded-Method", "X-API-Key", "X-User-Id"}) {
    EXPECT_EQ(Ask({{name, "/a"}, {name, "/b"}}).status, 400) << name;
    std::string alike = name;
    std::replace(alike.begin(), alike.end(), '-', '_');
    EXPECT_EQ(Ask({{name, "/a"}, {alike, "/b"}}).status, 400) << alike;
  }
}

TEST_F(AuthTarget, ThePairThatIsThereCountsByDefault) {
  ServeWith("");
  EXPECT_EQ(Ask({{"X-Original-URI", "/v1/pay"}}).status, 200);
  EXPECT_EQ(Ask({{"X-Forwarded-Uri", "/v1/pay"}}).status, 429);
  EXPECT_EQ(Ask({{"X-Forwarded-Uri", "/v1/posts"}, {"X-Forwarded-Method", "POST"}}).status, 200);
  EXPECT_EQ(Ask({{"X-Original-URI", "/v1/posts"}, {"X-Original-Method", "POST"}}).status, 429);
}

TEST_F(AuthTarget, ANamedPairMustBeThere) {
  ServeWith("forwarded");
  EXPECT_EQ(Ask({{"X-Forwarded-Uri", "/v1/pay"}}).status, 200);
  EXPECT_EQ(Ask({{"X-Forwarded-Uri", "/v1/pay"}}).status, 429);
  EXPECT_EQ(Ask({{"X-Original-URI", "/elsewhere"}}).status, 400);
  EXPECT_EQ(Ask({}).status, 400);
}

TEST_F(AuthTarget, WithoutAPairNothingOfTheClientsCounts) {
  ServeWith("none");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Ask({{"X-Original-URI", "/v1/pay"}}).status, 200);
}

}  // namespace
}  // namespace weir::test
