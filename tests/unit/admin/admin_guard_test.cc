#include "admin/admin_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::admin {
namespace {

int Ask(const AdminGuard& guard, std::string_view remote, std::vector<http::Header> headers = {},
        std::string_view method = "GET") {
  http::Request request;
  request.method = method;
  request.remote = remote;
  request.headers = std::move(headers);
  const auto refusal = guard.Refuse(request);
  return refusal ? refusal->status : 200;
}

AdminGuard Make(const std::vector<std::string>& keys, const std::vector<std::string>& allow) {
  std::vector<config::Digest> digests;
  for (const std::string& key : keys) digests.push_back(config::Sha256(key));
  return AdminGuard(std::move(digests), *ParseNetworks(allow));
}

TEST(AdminGuard, WithoutKeysLetsLoopbackInAndNobodyElse) {
  const AdminGuard guard = Make({}, {});
  EXPECT_EQ(Ask(guard, "127.0.0.1"), 200);
  EXPECT_EQ(Ask(guard, "127.9.9.9"), 200);
  EXPECT_EQ(Ask(guard, "::1"), 200);
  EXPECT_EQ(Ask(guard, "::ffff:127.0.0.1"), 200);
  EXPECT_EQ(Ask(guard, "10.0.0.1"), 403);
  EXPECT_EQ(Ask(guard, ""), 403);
}

TEST(AdminGuard, WithKeysAsksForOneOfThem) {
  const AdminGuard guard = Make({"first-key", "second-key"}, {});
  EXPECT_EQ(Ask(guard, "127.0.0.1"), 401);
  EXPECT_EQ(Ask(guard, "10.0.0.1", {{"x-api-key", "second-key"}}), 200);
  EXPECT_EQ(Ask(guard, "10.0.0.1", {{"Authorization", "bearer first-key"}}), 200);
  EXPECT_EQ(Ask(guard, "10.0.0.1", {{"X-API-Key", "second-keY"}}), 401);
  EXPECT_EQ(Ask(guard, "10.0.0.1", {{"X-API-Key", "second-key "}}), 401);
  EXPECT_EQ(Ask(guard, "10.0.0.1", {{"Authorization", "Basic first-key"}}), 401);
}

TEST(AdminGuard, ARefusalNamesTheRoleThatIsMissing) {
  using access::Operation;
  const access::Admission refused{.verdict = access::Admission::Verdict::kRoleMissing};
  for (const auto& [operation, role] : {std::pair(Operation::kOperate, "role operate,"),
                                        std::pair(Operation::kSend, "role send,")}) {
    const http::Response response = RefusalOf(refused, operation);
    EXPECT_EQ(response.status, 403);
    EXPECT_THAT(response.body, ::testing::HasSubstr(role));
  }
}

TEST(AdminGuard, LetsInOnlyTheAddressesOfTheList) {
  const AdminGuard guard = Make({"first-key"}, {"10.0.0.0/8"});
  EXPECT_EQ(Ask(guard, "10.1.2.3", {{"X-API-Key", "first-key"}}), 200);
  EXPECT_EQ(Ask(guard, "127.0.0.1", {{"X-API-Key", "first-key"}}), 403);
}

TEST(AdminGuard, RefusesWhatOtherSitesMakeABrowserSend) {
  const AdminGuard guard = Make({}, {});
  EXPECT_EQ(
      Ask(guard, "127.0.0.1", {{"Host", "localhost:8080"}, {"Origin", "http://localhost:8080"}}),
      200);
  EXPECT_EQ(
      Ask(guard, "127.0.0.1", {{"Host", "localhost:8080"}, {"Origin", "https://evil.example"}}),
      403);
  EXPECT_EQ(Ask(guard, "127.0.0.1", {{"Host", "localhost:8080"}, {"Origin", "null"}}), 403);
}

}  // namespace
TEST(AdminGuard, WithoutKeysAnswersToLoopbackNamesAlone) {
  // DNS rebinding: a page of evil.example whose name now points to 127.0.0.1.
  const AdminGuard open = Make({}, {});
  EXPECT_EQ(Ask(open, "127.0.0.1",
                {{"Host", "evil.example:8080"}, {"Origin", "http://evil.example:8080"}}),
            403);
  EXPECT_EQ(Ask(open, "127.0.0.1", {{"Host", "evil.example"}}), 403);
  EXPECT_EQ(Ask(open, "127.0.0.1", {{"Host", "localhost.evil.example"}}), 403);
  EXPECT_EQ(Ask(open, "127.0.0.1", {{"Host", "127.0.0.1.evil.example:80"}}), 403);
  EXPECT_EQ(Ask(open, "127.0.0.1", {{"Host", "[::1]:8080"}}), 200);
  EXPECT_EQ(Ask(open, "127.0.0.1", {{"Host", ":8080"}}), 403);
  EXPECT_EQ(Ask(open, "127.0.0.1", {{"Host", "[]:8080"}}), 403);
  EXPECT_EQ(Ask(open, "127.0.0.1", {{"Host", "127.0.0.1:8080"}}), 200);
  EXPECT_EQ(Ask(open, "127.0.0.1", {{"Host", "LOCALHOST"}}), 200);
}

TEST(AdminGuard, RefusesWhatTheBrowserSaysIsFromAnotherSite) {
  const AdminGuard guard = Make({}, {});
  for (const char* site : {"cross-site", "same-site"}) {
    EXPECT_EQ(Ask(guard, "127.0.0.1", {{"Host", "localhost"}, {"Sec-Fetch-Site", site}}), 403);
  }
  for (const char* site : {"same-origin", "none"}) {
    EXPECT_EQ(Ask(guard, "127.0.0.1", {{"Host", "localhost"}, {"Sec-Fetch-Site", site}}), 200);
  }
}

TEST(AdminGuard, TakesNoChangeInTheShapeOfAForm) {
  const AdminGuard guard = Make({}, {});
  const auto post = [&](std::vector<http::Header> headers) {
    return Ask(guard, "127.0.0.1", std::move(headers), "POST");
  };
  EXPECT_EQ(post({{"Content-Type", "text/plain"}}), 415);
  EXPECT_EQ(post({{"Content-Type", "Text/Plain; charset=utf-8"}}), 415);
  EXPECT_EQ(post({{"Content-Type", "multipart/form-data; boundary=x"}}), 415);
  EXPECT_EQ(post({{"Content-Type", "application/x-www-form-urlencoded"},
                  {"Referer", "http://localhost/"}}),
            415);
  EXPECT_EQ(post({{"Content-Type", "application/json"}}), 200);
  EXPECT_EQ(post({}), 200);
  // The default of curl -d.
  EXPECT_EQ(post({{"Content-Type", "application/x-www-form-urlencoded"}}), 200);
  EXPECT_EQ(Ask(guard, "127.0.0.1", {{"Content-Type", "text/plain"}}), 200);
}

}  // namespace weir::admin
