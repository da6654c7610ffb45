// A page of another site, open in a browser on this machine, can reach every port of it: by a
// request that needs no permission of the server, or through its own host name that resolves here.
// While no keys are configured, what is open to this machine must not be open to such a page.

#include "e2e/service/fixture.h"
#include "support/tcp_connection.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Call {
  const char* method;
  const char* target;
  const char* body;
};

// What is open without a key only because no keys are configured.
constexpr Call kPrivate[] = {
    {"POST", "/v1/refund", R"({"key":"k"})"},
    {"POST", "/v1/release", R"({"key":"k","lease":1})"},
    {"POST", "/v1/settle", R"({"reservation":"AA","cost":1})"},
    {"POST", "/api/send", R"({"userId":"u","message":"m"})"},
    {"POST", "/api/v1/slots/claim", R"({"config":"c"})"},
    {"POST", "/api/v1/slots/done", R"({"events":[{"eventId":"e","attempt":1}]})"},
    {"POST", "/api/v1/slots/e/restore", "{}"},
    {"DELETE", "/api/v1/slots/e", ""},
};

class Browser : public ServiceTest {};

TEST_F(Browser, APageOfAnotherSiteChangesNothing) {
  Serve();
  HttpClient client = Client();
  ASSERT_EQ(client.Post("/v1/check", R"({"key":"k"})").status, 200);
  const HttpHeaders by_origin = {{"Origin", "http://evil.example"}, {"Content-Type", "text/plain"}};
  const HttpHeaders by_fetch = {{"Sec-Fetch-Site", "cross-site"}, {"Content-Type", "text/plain"}};
  for (const Call& call : kPrivate) {
    EXPECT_EQ(client.Send(call.method, call.target, call.body, by_origin).status, 403)
        << call.target;
    EXPECT_EQ(client.Send(call.method, call.target, call.body, by_fetch).status, 403)
        << call.target;
    // Programs and the service's own pages get a real answer.
    const HttpHeaders own = {{"Origin", "http://127.0.0.1:1"}, {"Host", "127.0.0.1:1"}};
    EXPECT_NE(client.Send(call.method, call.target, call.body).status, 403) << call.target;
    EXPECT_NE(client.Send(call.method, call.target, call.body, own).status, 403) << call.target;
  }
  EXPECT_EQ(client.Post("/api/v1/slots", "{}", by_origin).status, 403);
}

TEST_F(Browser, ANameThatPointsHereIsNotThisMachine) {
  Serve();
  HttpClient client = Client();
  const HttpHeaders rebound = {{"Host", "evil.example"}, {"Origin", "http://evil.example"}};
  for (const Call& call : kPrivate) {
    EXPECT_EQ(client.Send(call.method, call.target, call.body, rebound).status, 403) << call.target;
  }
  for (const char* target :
       {"/api/messages?userId=u", "/api/v1/slots/e", "/api/v1/slots/due?config=c"}) {
    EXPECT_EQ(client.Get(target, {{"Host", "evil.example"}}).status, 403) << target;
    EXPECT_NE(client.Get(target, {{"Host", "localhost:8080"}}).status, 403) << target;
  }
  EXPECT_EQ(client.Get("/api/messages?userId=u", {{"Host", "localhost:8080"}}).status, 200);
  // Checks are for any proxy in front, under any name.
  EXPECT_EQ(client.Post("/v1/check", R"({"key":"k"})", {{"Host", "weir.example"}}).status, 200);
}

TEST_F(Browser, WithAKeyNamesDoNotMatter) {
  Serve({"--admin-key", "a-key-of-this-test"});
  HttpClient client = Client();
  const HttpHeaders headers = {{"Host", "weir.example"}, {"X-API-Key", "a-key-of-this-test"}};
  EXPECT_EQ(client.Post("/v1/refund", R"({"key":"k"})", headers).status, 200);
  EXPECT_EQ(client.Get("/api/messages?userId=u", headers).status, 200);
}

TEST_F(Browser, WhatAProxyAsksAboutABrowserIsAnswered) {
  ServePolicies(R"(
policies:
  - { name: two, match: { ip: "*" }, quota: { concurrency: { limit: 2, lease: 1m } } }
)");
  HttpClient client = Client();
  const HttpHeaders passed_on = {{"Host", "shop.example"},
                                 {"Origin", "http://elsewhere.example"},
                                 {"Sec-Fetch-Site", "cross-site"}};
  const HttpResponse allowed = client.Get("/v1/auth", passed_on);
  ASSERT_EQ(allowed.status, 200);
  const std::string lease(allowed.Header("X-RateLimit-Leases"));
  ASSERT_FALSE(lease.empty());
  EXPECT_EQ(client.Get("/v1/auth?release=" + lease, passed_on).status, 200);
}

TEST_F(Browser, CommandsInTheBodyOfARequestAreNotRun) {
  Serve({"--resp", "127.0.0.1:0"});
  HttpClient client = Client();
  ASSERT_EQ(client.Post("/v1/check", R"({"key":"k"})").status, 200);
  for (const char* head : {"POST / HTTP/1.1\r\nHost: localhost:6380\r\n\r\n",
                           "GET /a%20b HTTP/1.1\r\nHost: localhost:6380\r\n\r\n",
                           "OPTIONS * HTTP/1.0\r\n\r\n", "Host: localhost\r\n"}) {
    TcpConnection resp(weir_->Port("resp"));
    resp.Send(std::string(head) + "WEIR.RESET k\r\n");
    const std::string answer = resp.ReadAll();  // the connection is closed
    EXPECT_THAT(answer, StartsWith("-ERR this port speaks the Redis protocol")) << head;
    EXPECT_THAT(answer, Not(HasSubstr("+OK"))) << head;
  }
  // 100 at first: 1 was taken and has not been refunded.
  EXPECT_THAT(client.Post("/v1/peek", R"({"key":"k"})").body, HasSubstr(R"("remaining":99)"));
}

}  // namespace
}  // namespace weir::test
