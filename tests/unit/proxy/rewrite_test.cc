#include "proxy/rewrite.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::proxy {
namespace {

std::string Forward(std::string_view bytes, const Sender& sender = {"192.0.2.7", false}) {
  http::RequestHead head;
  EXPECT_TRUE(http::ParseRequestHead(bytes, {}, head).complete()) << bytes;
  std::string out;
  WriteRequestHead(head, sender, out);
  return out;
}

std::string Back(std::string_view bytes, std::string_view extra = {}, Ending ending = {}) {
  http::ResponseHead head;
  EXPECT_TRUE(http::ParseResponseHead(bytes, {}, head).complete()) << bytes;
  std::string out;
  WriteResponseHead(head, extra, ending, out);
  return out;
}

TEST(WriteRequestHead, PassesFieldsOnAndAddsItsOwn) {
  EXPECT_EQ(Forward("POST /x?y=1 HTTP/1.1\r\nUser-Agent: t\r\nHost: a\r\n"
                    "traceparent: 00-1-2-01\r\nContent-Length: 3\r\n\r\n"),
            "POST /x?y=1 HTTP/1.1\r\nHost: a\r\nUser-Agent: t\r\ntraceparent: 00-1-2-01\r\n"
            "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: a\r\nX-Forwarded-Proto: http\r\n"
            "Via: 1.1 weir\r\nContent-Length: 3\r\n\r\n");
}

TEST(WriteRequestHead, RemovesWhatIsForThisHop) {
  EXPECT_EQ(Forward("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\n"
                    "Keep-Alive: timeout=5\r\nTE: trailers\r\nProxy-Connection: close\r\n"
                    "Proxy-Authorization: secret\r\nUpgrade: h2c\r\nX-Kept: 1\r\n\r\n"),
            "GET / HTTP/1.1\r\nHost: a\r\nX-Kept: 1\r\nX-Forwarded-For: 192.0.2.7\r\n"
            "X-Forwarded-Host: a\r\nX-Forwarded-Proto: http\r\nVia: 1.1 weir\r\n\r\n");
}

TEST(WriteRequestHead, NeverLosesHostOrFramingToConnection) {
  EXPECT_EQ(Forward("POST / HTTP/1.1\r\nHost: a\r\nConnection: Host, Content-Length\r\n"
                    "Content-Length: 3\r\n\r\n"),
            "POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: a\r\n"
            "X-Forwarded-Proto: http\r\nVia: 1.1 weir\r\nContent-Length: 3\r\n\r\n");
}

TEST(WriteRequestHead, ReplacesForwardedFieldsOfStrangers) {
  EXPECT_EQ(Forward("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\n"
                    "X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n\r\n"),
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: a\r\n"
            "X-Forwarded-Proto: http\r\nVia: 1.1 weir\r\n\r\n");
}

TEST(WriteRequestHead, RemovesWhatMisleadsTheUpstream) {
  for (const std::string name :
       {"X-Original-URL", "X-Original-Forwarded-For", "X-Forwarded-Anything", "x_forwarded_uri",
        "X-Envoy-Original-Path", "CF-Connecting-IP", "X-Override-URL", "X_HTTP_Method_Override",
        "Client_IP", "Proxy", "proxy", "X.Real.IP", "X+Original+URL", "X~HTTP~Method~Override"}) {
    const std::string bytes = "GET / HTTP/1.1\r\nHost: a\r\n" + name + ": /v1/pay\r\n\r\n";
    EXPECT_EQ(Forward(bytes).find("/v1/pay"), std::string::npos) << name;
    EXPECT_NE(Forward(bytes, {"192.0.2.7", true}).find("/v1/pay"), std::string::npos) << name;
  }
  EXPECT_NE(Forward("GET / HTTP/1.1\r\nHost: a\r\nX-Originals: 1\r\n\r\n").find("X-Originals"),
            std::string::npos);
}

TEST(WriteRequestHead, ExtendsForwardedFieldsOfTrustedProxies) {
  EXPECT_EQ(Forward("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\n"
                    "X-Forwarded-For: 10.0.0.2\r\nX-Forwarded-Proto: https\r\n"
                    "X-Forwarded-Host: public\r\n\r\n",
                    {"10.0.0.1", true}),
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1, 10.0.0.2, 10.0.0.1\r\n"
            "X-Forwarded-Host: public\r\nX-Forwarded-Proto: https\r\nVia: 1.1 weir\r\n\r\n");
}

TEST(WriteRequestHead, OffersTheUpgradeThatItIsTold) {
  EXPECT_EQ(Forward("GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                    "Upgrade: h2c, websocket\r\nSec-WebSocket-Key: k\r\n\r\n",
                    {"192.0.2.7", false, "websocket"}),
            "GET /chat HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: k\r\n"
            "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: a\r\nX-Forwarded-Proto: http\r\n"
            "Via: 1.1 weir\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
}

TEST(WriteRequestHead, OffersNoUpgradeUnlessItIsTold) {
  EXPECT_EQ(Forward("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                    "Upgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n"),
            "GET / HTTP/1.1\r\nHost: a\r\n"
            "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: a\r\nX-Forwarded-Proto: http\r\n"
            "Via: 1.1 weir\r\n\r\n");
}

TEST(Upgrades, AreThoseThatAreAskedForAndAllowed) {
  const std::vector<std::string> allowed = {"websocket", "custom"};
  const auto offered = [&](const std::string& fields) {
    http::RequestHead head;
    const std::string bytes = "GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
    EXPECT_TRUE(http::ParseRequestHead(bytes, {}, head).complete());
    return OfferedUpgrades(head, allowed);
  };
  EXPECT_EQ(offered("Connection: upgrade\r\nUpgrade: h2c, WebSocket\r\n"), "websocket");
  EXPECT_EQ(offered("Connection: upgrade\r\nUpgrade: custom\r\nUpgrade: websocket\r\n"),
            "websocket, custom");
  EXPECT_EQ(offered("Connection: upgrade\r\nUpgrade: h2c\r\n"), "");
  EXPECT_EQ(offered("Upgrade: websocket\r\n"), "");
}

TEST(Upgrades, AreChosenAmongTheOffered) {
  const auto chooses = [](const std::string& fields, std::string_view offer) {
    http::ResponseHead head;
    const std::string bytes = "HTTP/1.1 101 Switching Protocols\r\n" + fields + "\r\n";
    EXPECT_TRUE(http::ParseResponseHead(bytes, {}, head).complete());
    return ChoosesUpgrade(head, offer);
  };
  EXPECT_TRUE(chooses("Connection: upgrade\r\nUpgrade: WebSocket\r\n", "websocket, custom"));
  EXPECT_FALSE(chooses("Connection: upgrade\r\nUpgrade: h2c\r\n", "websocket"));
  EXPECT_FALSE(chooses("Connection: upgrade\r\nUpgrade: websocket, h2c\r\n", "websocket"));
  EXPECT_FALSE(chooses("Upgrade: websocket\r\n", "websocket"));
}

TEST(WriteRequestHead, UsesTheAuthorityOfAnAbsoluteTarget) {
  EXPECT_EQ(Forward("GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n").substr(0, 31),
            "GET /x HTTP/1.1\r\nHost: b\r\nX-For");
}

TEST(WriteRequestHead, KeepsAnEmptyHost) {
  EXPECT_EQ(Forward("GET / HTTP/1.1\r\nHost:\r\n\r\n"),
            "GET / HTTP/1.1\r\nHost: \r\nX-Forwarded-For: 192.0.2.7\r\n"
            "X-Forwarded-Proto: http\r\nVia: 1.1 weir\r\n\r\n");
}

TEST(WriteRequestHead, StaysHttp10ForAnHttp10Client) {
  EXPECT_EQ(Forward("GET / HTTP/1.0\r\n\r\n"),
            "GET / HTTP/1.0\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\n"
            "Via: 1.1 weir\r\nConnection: close\r\n\r\n");
}

TEST(WriteResponseHead, AddsLimitsAndRemovesWhatIsForTheUpstreamsHop) {
  EXPECT_EQ(Back("HTTP/1.1 200 Fine\r\nServer: x\r\nConnection: keep-alive\r\n"
                 "Keep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\n",
                 "X-RateLimit-Limit: 5\r\n"),
            "HTTP/1.1 200 Fine\r\nServer: x\r\nVia: 1.1 weir\r\nContent-Length: 2\r\n"
            "X-RateLimit-Limit: 5\r\n\r\n");
}

TEST(WriteResponseHead, KeepsTheLengthOfAResponseToHead) {
  EXPECT_EQ(Back("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
            "HTTP/1.1 304 Not Modified\r\nVia: 1.1 weir\r\nContent-Length: 9\r\n\r\n");
}

TEST(WriteResponseHead, RemovesTheLengthOfWhatNeverHasABody) {
  for (const std::string framing : {"Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n"}) {
    for (const std::string line : {"HTTP/1.1 103 Early Hints\r\n", "HTTP/1.1 204 x\r\n"}) {
      EXPECT_EQ(Back(line + framing + "\r\n"), line + "Via: 1.1 weir\r\n\r\n");
    }
  }
}

TEST(WriteResponseHead, SaysHowTheConnectionGoesOn) {
  const std::string_view head = "HTTP/1.1 204 x\r\n\r\n";
  EXPECT_EQ(Back(head, {}, {.close = true}),
            "HTTP/1.1 204 x\r\nVia: 1.1 weir\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(Back(head, {}, {.http10 = true}),
            "HTTP/1.1 204 x\r\nVia: 1.1 weir\r\nConnection: keep-alive\r\n\r\n");
}

TEST(WriteResponseHead, PassesASwitchOn) {
  EXPECT_EQ(Back("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                 "Connection: Upgrade\r\nSec-WebSocket-Accept: k\r\n\r\n"),
            "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: k\r\nVia: 1.1 weir\r\n"
            "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n");
}

TEST(WriteOwnResponse, IsComplete) {
  std::string out;
  WriteOwnResponse(
      {.status = 429, .content_type = "text/plain", .extra = "Retry-After: 7\r\n", .body = "wait"},
      {.close = true}, out);
  EXPECT_EQ(out,
            "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n"
            "Retry-After: 7\r\nConnection: close\r\n\r\nwait");
  out.clear();
  WriteOwnResponse({.status = 502, .content_type = "text/plain", .body = "gone", .head_only = true},
                   {}, out);
  EXPECT_EQ(out,
            "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n");
}

}  // namespace
}  // namespace weir::proxy
