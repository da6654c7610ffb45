// Who a request is from, when the client pretends to be someone else; and one limit if two
// programs share one folder.

#include "hostile/edge/proxy_fixture.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kPerKey = R"(
policies:
  - name: per-key
    match: { api_key: "*" }
    quota: { fixed_window: { limit: 1, window: 100d } }
)";
constexpr const char* kPerIp = R"(
policies:
  - name: per-ip
    match: { ip: "*" }
    quota: { fixed_window: { limit: 1, window: 100d } }
)";

using Identity = ProxyProgramTest;

TEST_F(Identity, ASecondKeyIsRefusedAndReachesNobody) {
  Start(kPerKey, {"--user-header", "X-User"});
  HttpClient client(port_);
  for (int i = 0; i < 5; ++i) {
    // The upstream may use the second line, or both.
    const std::string fresh = "fresh-" + std::to_string(i);
    EXPECT_EQ(client.Get("/", {{"X-API-Key", fresh}, {"X-API-Key", "real"}}).status, 400);
    EXPECT_EQ(client.Get("/", {{"X-API-Key", fresh}, {"X_API_Key", "real"}}).status, 400);
    EXPECT_EQ(client.Get("/", {{"X-User", fresh}, {"x-user", "real"}}).status, 400);
  }
  EXPECT_THAT(requests(), SizeIs(0));
  EXPECT_EQ(client.Get("/", {{"X-API-Key", "real"}}).status, 200);
  EXPECT_EQ(client.Get("/", {{"X-API-Key", "real"}}).status, 429);
}

TEST_F(Identity, AKeyThatIsCountedAlsoReachesTheUpstream) {
  Start(kPerKey, {"--user-header", "X-User"});
  HttpClient client(port_);
  for (int i = 0; i < 5; ++i) {
    // The key would be removed on this hop, and the upstream would see an anonymous request.
    const std::string fresh = "fresh-" + std::to_string(i);
    EXPECT_EQ(client.Get("/", {{"X-API-Key", fresh}, {"Connection", "x-api-key"}}).status, 400);
    EXPECT_EQ(client.Get("/", {{"X-User", fresh}, {"Connection", "keep-alive, X-User"}}).status,
              400);
  }
  EXPECT_THAT(requests(), SizeIs(0));
  EXPECT_EQ(client.Get("/", {{"X-API-Key", "real"}, {"Connection", "x-other"}}).status, 200);
}

TEST_F(Identity, ManyForwardedLinesDoNotMakeTheClientTheProxy) {
  Start(kPerIp, {"--trusted-proxies", "127.0.0.1"});
  HttpClient client(port_);
  const auto from = [&](const std::string& address, int lines) {
    HttpHeaders headers;
    for (int i = 0; i < lines; ++i) headers.emplace_back("X-Forwarded-For", "203.0.113.9");
    headers.emplace_back("X-Forwarded-For", address);  // added by the trusted proxy
    return client.Get("/", headers).status;
  };
  EXPECT_EQ(from("198.51.100.1", 40), 200);
  EXPECT_EQ(from("198.51.100.2", 40), 200);  // no one else is charged for the first one
  EXPECT_EQ(from("198.51.100.1", 100), 429);
  EXPECT_EQ(from("198.51.100.1", 0), 429);
}

constexpr const char* kPerMethod = R"(
policies:
  - name: pay
    match: { ip: "*", method: POST }
    quota: { fixed_window: { limit: 1, window: 100d } }
)";

// Some frameworks treat "post" as POST.
TEST_F(Identity, AMethodInSmallLettersIsRefused) {
  Start(kPerMethod);
  HttpClient client(port_);
  EXPECT_EQ(client.Send("POST", "/pay", "").status, 200);
  EXPECT_EQ(client.Send("POST", "/pay", "").status, 429);
  EXPECT_EQ(client.Send("post", "/pay", "").status, 400);
  EXPECT_EQ(client.Send("PoST", "/pay", "").status, 400);
  EXPECT_THAT(requests(), SizeIs(1));
}

// An upstream that trusts them serves another page, method or client than the one counted.
TEST_F(Identity, FieldsThatNameAnotherTargetOrClientReachNobodyFromStrangers) {
  const HttpHeaders headers = {
      {"X-Original-URL", "/v1/pay"},  {"x-rewrite-url", "/v1/pay"},
      {"X_Rewrite_Url", "/v1/pay"},   {"X-HTTP-Method-Override", "DELETE"},
      {"X-Real-IP", "203.0.113.9"},   {"Forwarded", "for=203.0.113.9"},
      {"X-Forwarded-Uri", "/v1/pay"}, {"X-Kept", "yes"},
  };
  Start(kPerIp);
  ASSERT_EQ(HttpClient(port_).Get("/free", headers).status, 200);
  ASSERT_THAT(requests(), SizeIs(1));
  EXPECT_THAT(requests()[0], HasSubstr("X-Kept: yes"));
  EXPECT_THAT(requests()[0], Not(HasSubstr("v1/pay")));
  EXPECT_THAT(requests()[0], Not(HasSubstr("DELETE")));
  EXPECT_THAT(requests()[0], Not(HasSubstr("203.0.113.9")));
}

TEST_F(Identity, TrustedProxiesMaySendThem) {
  Start(kPerIp, {"--trusted-proxies", "127.0.0.1"});
  ASSERT_EQ(HttpClient(port_).Get("/free", {{"X-Original-URL", "/v1/pay"}}).status, 200);
  EXPECT_THAT(requests()[0], HasSubstr("X-Original-URL: /v1/pay"));
}

TEST_F(Identity, TrailersOfARequestAreNotPassedOn) {
  Start(kPerKey);
  HttpClient client(port_);
  client.SendRaw(
      "POST / HTTP/1.1\r\nHost: h\r\nX-API-Key: fresh\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0\r\nX-API-Key: real\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().status, 200);
  // The connection continues after the trailers.
  EXPECT_EQ(client.Get("/", {{"X-API-Key", "other"}}).status, 200);
  ASSERT_THAT(requests(), SizeIs(2));
  EXPECT_THAT(requests()[0], HasSubstr("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
  EXPECT_THAT(requests()[0], Not(HasSubstr("real")));
  EXPECT_THAT(requests()[0], Not(HasSubstr("203.0.113.9")));
}

TEST_F(Identity, TwoProxiesNeverHaveOneFolder) {
  Start("", {"--per-ip", "5/60m"});
  WeirProcess second(Args({"--per-ip", "5/60m"}));
  EXPECT_TRUE(second.process().WaitForError("is in use by process"));
  EXPECT_NE(second.process().Wait().value_or(0), 0);
  // The first one is not affected, and another folder can be used by another proxy.
  HttpClient client(port_);
  EXPECT_EQ(client.Get("/").status, 200);
  WeirProcess third(Args({"--per-ip", "5/60m"}, "third"));
  EXPECT_NE(third.Port("proxy"), 0);
}

TEST_F(Identity, WithoutFlagsEachAddressHasAHundredRequestsAnHour) {
  Start("", {"--trusted-proxies", "127.0.0.1"});
  HttpClient client(port_);
  for (int i = 0; i < 100; ++i) {
    const HttpResponse response = client.Get("/", {{"X-Forwarded-For", "198.51.100.1"}});
    ASSERT_EQ(response.status, 200) << i;
    ASSERT_EQ(response.Header("X-RateLimit-Remaining"), std::to_string(99 - i));
    ASSERT_THAT(std::string(response.Header("RateLimit-Policy")), HasSubstr("q=100;w=3600"));
  }
  EXPECT_EQ(client.Get("/", {{"X-Forwarded-For", "198.51.100.1"}}).status, 429);
  EXPECT_EQ(client.Get("/", {{"X-Forwarded-For", "198.51.100.2"}}).status, 200);
}

TEST_F(Identity, AllOfItMayStandInTheFile) {
  const auto config = dir_.Write(
      "weir.yaml", "proxy:\n  upstream: [\"http://127.0.0.1:" + std::to_string(upstream_.port()) +
                       "\"]\n  listen: 127.0.0.1:0\n  per_ip: 2/1h\n"
                       "  user_header: X-User\n"
                       "cleanup: { interval: 1h }\ndata: " +
                       (dir_ / "from-file").string() + "\n");
  WeirProcess proxy({"proxy", "--config", config.string()});
  HttpClient client(proxy.Port("proxy"));
  EXPECT_EQ(client.Get("/").status, 200);
  EXPECT_EQ(client.Get("/").status, 200);
  EXPECT_EQ(client.Get("/").status, 429);
}

}  // namespace
}  // namespace weir::test
