#include <gmock/gmock.h>

#include "integration/proxy/fixture.h"

namespace weir::proxy {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_F(ProxyTest, AddsLimitHeadersToWhatPasses) {
  AnswerAlways(kOk);
  StartProxy(3);
  test::HttpClient client(port_);
  const auto response = client.Get("/");
  EXPECT_EQ(response.Header("X-RateLimit-Limit"), "3");
  EXPECT_EQ(response.Header("X-RateLimit-Remaining"), "2");
  EXPECT_EQ(response.Header("X-RateLimit-Reset"), "60");
  EXPECT_EQ(response.Header("RateLimit-Policy"), "\"few\";q=3;w=60");
  EXPECT_EQ(response.Header("RateLimit"), "\"few\";r=2;t=60");
  EXPECT_FALSE(response.HasHeader("Retry-After"));
}

TEST_F(ProxyTest, RefusesWithoutAskingTheUpstream) {
  AnswerAlways(kOk);
  StartProxy(1);
  test::HttpClient client(port_);
  EXPECT_EQ(client.Get("/").status, 200);
  const auto denied = client.Get("/");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Header("Retry-After"), "7");  // 6.5 s, rounded up
  EXPECT_EQ(denied.body, "Try again in 7 seconds");
  const auto json = client.Get("/", {{"Accept", "application/json"}});
  EXPECT_EQ(json.Header("Content-Type"), "application/json");
  EXPECT_THAT(json.body, HasSubstr("\"message\":\"Try again in 7 seconds\""));
  EXPECT_EQ(client.Send("HEAD", "/").status, 429);
  EXPECT_THAT(heads(), SizeIs(1));
  // All on one connection: a denial does not cost a client its connection.
  EXPECT_EQ(pool_->reactor(0).stats().accepted, 1U);
}

TEST_F(ProxyTest, RefusesManyPipelinedRequestsAtOnce) {
  AnswerAlways(kOk);
  StartProxy(1);
  test::HttpClient client(port_);
  std::string requests;
  for (int i = 0; i < 300; ++i) requests += "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  client.SendRaw(requests);
  EXPECT_EQ(client.ReadResponse().status, 200);
  for (int i = 1; i < 300; ++i) ASSERT_EQ(client.ReadResponse().status, 429) << i;
}

TEST_F(ProxyTest, RefusesAnUploadBeforeItIsSent) {
  AnswerAlways(kOk);
  StartProxy(0 + 1);
  test::HttpClient client(port_);
  client.Get("/");
  // A body that has arrived is skipped, and the connection stays open.
  EXPECT_EQ(client.Post("/", "{}").status, 429);
  EXPECT_EQ(client.Get("/").status, 429);
  EXPECT_EQ(pool_->reactor(0).stats().accepted, 1U);
  // One that has not arrived is not awaited.
  client.SendRaw(
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n");
  const auto denied = client.ReadResponse();
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Header("Connection"), "close");
}

TEST_F(ProxyTest, TellsARefusedUploaderThoughItGoesOnSending) {
  AnswerAlways(kOk);
  StartProxy(1);
  test::HttpClient(port_).Get("/");
  test::TcpConnection client(port_);
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n");
  client.Send(std::string(4'000'000, 'x'));
  EXPECT_THAT(client.ReadAll(), HasSubstr("Try again in 7 seconds"));
}

TEST_F(ProxyTest, AsksAboutWhoAndWhat) {
  AnswerAlways(kOk);
  options_.user_header = "X-User";
  StartProxy(9);
  test::HttpClient client(port_);
  client.Get("/v1/pay?x=1", {{"x-api-key", "k1"}, {"X-User", "ann"}});
  EXPECT_THAT(limiter_->seen(), UnorderedElementsAre(Pair("ip", "127.0.0.1"), Pair("api_key", "k1"),
                                                     Pair("user", "ann"), Pair("route", "/v1/pay"),
                                                     Pair("method", "GET")));
}

TEST_F(ProxyTest, NotesRequestsThatItRefusesWithoutACheck) {
  AnswerAlways(kOk);
  StartProxy(9);
  test::HttpClient client(port_);
  EXPECT_EQ(client.Get("/v1/../x").status, 400);
  EXPECT_EQ(limiter_->rejected(), "127.0.0.1: the path contains a . or .. segment");
}

TEST_F(ProxyTest, TellsClientsBehindATrustedProxyApart) {
  AnswerAlways(kOk);
  options_.trusted_proxies = {*IpNetwork::Parse("127.0.0.0/8")};
  StartProxy(1);
  test::HttpClient client(port_);
  const auto status = [&](const char* chain) {
    return client.Get("/", {{"X-Forwarded-For", chain}}).status;
  };
  EXPECT_EQ(status("198.51.100.1"), 200);
  EXPECT_EQ(status("6.6.6.6, 198.51.100.1"), 429);  // the client's own entry changes nothing
  EXPECT_EQ(status("198.51.100.2"), 200);
  EXPECT_EQ(status("2001:db8:0:1::1"), 200);
  EXPECT_EQ(status("2001:db8:0:1::2"), 429);  // the same /64
  EXPECT_EQ(limiter_->seen()["ip"], "2001:db8:0:1::/64");
  EXPECT_THAT(heads()[0], HasSubstr("X-Forwarded-For: 198.51.100.1, 127.0.0.1\r\n"));
}

TEST_F(ProxyTest, RefusesSmuggledRequests) {
  AnswerAlways(kOk);
  StartProxy();
  const std::string start = "POST / HTTP/1.1\r\nHost: x\r\n";
  for (const std::string_view rest :
       {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
        "Content-Length: 5\r\nContent-Length: 0\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "Content-Length: +5\r\n\r\nhello",
        "X: y\r\n Content-Length: 5\r\n\r\nhello", "X: y\nContent-Length: 5\r\n\r\nhello"}) {
    test::TcpConnection client(port_);
    client.Send(start + std::string(rest) + "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string all = client.ReadAll();
    EXPECT_TRUE(all.starts_with("HTTP/1.1 400 Bad Request\r\n")) << rest << all;
    EXPECT_EQ(all.find("HTTP/1.1", 1), std::string::npos) << "one answer only: " << all;
  }
  EXPECT_THAT(heads(), IsEmpty());
}

TEST_F(ProxyTest, RefusesAMalformedChunk) {
  AnswerAlways(kOk);
  StartProxy();
  test::TcpConnection client(port_);
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n");
  EXPECT_THAT(client.ReadAll(), HasSubstr("400 Bad Request"));
}

TEST_F(ProxyTest, BoundsHeads) {
  AnswerAlways(kOk);
  StartProxy();
  test::TcpConnection large(port_);
  large.Send("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n");
  EXPECT_THAT(large.ReadAll(), HasSubstr("431 Request Header Fields Too Large"));
  test::TcpConnection many(port_);
  std::string fields;
  for (int i = 0; i < 200; ++i) fields += "A: b\r\n";
  many.Send("GET / HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
  EXPECT_THAT(many.ReadAll(), HasSubstr("431 Request Header Fields Too Large"));
  test::HttpClient fits(port_);
  EXPECT_EQ(fits.Get("/", {{"X", std::string(30'000, 'x')}}).status, 200);
}

}  // namespace
}  // namespace weir::proxy
