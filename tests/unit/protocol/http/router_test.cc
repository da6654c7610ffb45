#include "protocol/http/router.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::http {
namespace {

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    Add("GET", "/");
    Add("GET", "/admin/policies");
    Add("POST", "/admin/policies");
    Add("GET", "/admin/policies/{key}");
    Add("DELETE", "/admin/policies/{key}");
    Add("GET", "/admin/policies/special");
    Add("GET", "/v1/{a}/x/{b}");
  }

  void Add(std::string method, std::string pattern) {
    router_.Add(method, pattern,
                [name = method + " " + pattern](const http::Request& request, http::Reply reply) {
                  http::Response response;
                  response.body = name;
                  for (const std::string& parameter : request.params)
                    response.body += "|" + parameter;
                  reply(std::move(response));
                });
  }

  http::Response Ask(std::string_view method, std::string_view path) {
    http::Request request;
    request.method = method;
    request.path = path;
    http::Response answer;
    router_.Dispatch(request, [&](http::Response response) { answer = std::move(response); });
    return answer;
  }

  Router router_;
};

TEST_F(RouterTest, FindsLiteralsBeforeParameters) {
  EXPECT_EQ(Ask("GET", "/").body, "GET /");
  EXPECT_EQ(Ask("GET", "/admin/policies").body, "GET /admin/policies");
  EXPECT_EQ(Ask("GET", "/admin/policies/special").body, "GET /admin/policies/special");
  EXPECT_EQ(Ask("GET", "/admin/policies/other").body, "GET /admin/policies/{key}|other");
  EXPECT_EQ(Ask("GET", "/v1/1/x/2").body, "GET /v1/{a}/x/{b}|1|2");
}

TEST_F(RouterTest, DecodesParametersAfterSplitting) {
  EXPECT_EQ(Ask("DELETE", "/admin/policies/a%2Fb").body, "DELETE /admin/policies/{key}|a/b");
  EXPECT_EQ(Ask("DELETE", "/admin/policies/a%00b").status, 400);
  EXPECT_EQ(Ask("DELETE", "/admin/policies/%").status, 400);
}

TEST_F(RouterTest, AnswersUnknownPathsWith404) {
  for (const char* path : {"/x", "/admin", "/admin/", "/admin/policies/", "/admin/policies/a/b",
                           "//", "", "admin", "*", "/v1//x/2"}) {
    EXPECT_EQ(Ask("GET", path).status, 404) << path;
  }
}

TEST_F(RouterTest, SaysWhereToFindThePathsThatThereAre) {
  Router two;
  const auto none = [](const http::Request&, const http::Reply& reply) { reply({}); };
  two.Add("GET", "/metrics", none);
  two.Add("GET", "/healthz", none);
  const auto said = [&two] {
    http::Request request;
    request.method = "GET";
    request.path = "/x";
    std::string body;
    two.Dispatch(request, [&body](http::Response response) { body = std::move(response.body); });
    return body;
  };
  EXPECT_NE(said().find("\"no such path: /x; known are GET /metrics, GET /healthz\""),
            std::string::npos)
      << said();
  two.Add("GET", "/admin/routes", none);
  EXPECT_NE(said().find("no such path: /x; see GET /admin/routes for the list"), std::string::npos);
}

TEST_F(RouterTest, AnswersOtherMethodsWith405AndAllow) {
  const http::Response response = Ask("PUT", "/admin/policies");
  EXPECT_EQ(response.status, 405);
  ASSERT_EQ(response.headers.size(), 1u);
  EXPECT_EQ(response.headers[0].first, "Allow");
  EXPECT_EQ(response.headers[0].second, "GET, POST");
}

TEST_F(RouterTest, TreatsHeadAsGet) { EXPECT_EQ(Ask("HEAD", "/").body, "GET /"); }

TEST_F(RouterTest, ListsWhatWasAdded) {
  ASSERT_EQ(router_.routes().size(), 7U);
  EXPECT_EQ(router_.routes()[3],
            std::make_pair(std::string("GET"), std::string("/admin/policies/{key}")));
}

TEST_F(RouterTest, FindsBatchedPathsAsTheyAreAndListsThem) {
  router_.AddBatched("POST", "/v1/check", 3);
  EXPECT_EQ(router_.FindBatched("/v1/check"), 3U);
  for (const char* path : {"", "/", "/v1", "/v1/", "/v1/check/", "/v1/checks", "//v1/check",
                           "v1/check", "/v1/%63heck", "/admin/policies"}) {
    EXPECT_EQ(router_.FindBatched(path), std::nullopt) << path;
  }
  EXPECT_EQ(router_.routes().back(), std::make_pair(std::string("POST"), std::string("/v1/check")));
}

TEST_F(RouterTest, AsksItsGuardBeforeAHandler) {
  std::vector<std::size_t> asked;
  router_.SetGuard([&](const Request& request, std::size_t route) -> std::optional<Response> {
    asked.push_back(route);
    if (request.method != "DELETE") return std::nullopt;
    Response refusal;
    refusal.status = 403;
    return refusal;
  });
  EXPECT_EQ(Ask("GET", "/admin/policies").status, 200);
  EXPECT_EQ(Ask("DELETE", "/admin/policies/a").status, 403);
  EXPECT_EQ(Ask("GET", "/nowhere").status, 404);
  EXPECT_EQ(asked, (std::vector<std::size_t>{1, 4})) << "their places among the routes";
}

TEST_F(RouterTest, TellsAWitnessWhatWasAnswered) {
  std::vector<std::string> seen;
  router_.SetObserver([&](const Request& request, std::size_t) -> Router::Witness {
    if (request.method == "GET") return {};
    return [&seen](const Response& response) { seen.push_back(response.body); };
  });
  Ask("GET", "/admin/policies");
  EXPECT_EQ(Ask("POST", "/admin/policies").body, "POST /admin/policies");
  EXPECT_EQ(seen, std::vector<std::string>{"POST /admin/policies"});
}

TEST_F(RouterTest, AParameterMayTakeAnyBytes) {
  Add("GET", "/keys/{*key}");
  EXPECT_EQ(Ask("GET", "/keys/a%00b").body, std::string("GET /keys/{*key}|a\0b", 20));
  EXPECT_EQ(Ask("GET", "/keys/%zz").status, 400);
  EXPECT_EQ(router_.routes().back().second, "/keys/{key}") << "shown without the star";
}

TEST_F(RouterTest, HeadNeedsAGet) {
  Add("POST", "/only");
  EXPECT_EQ(Ask("HEAD", "/only").status, 405);
}

}  // namespace
}  // namespace weir::http
