#include "protocol/http/head.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::http {
namespace {

struct Parsed {
  HeadResult result;
  RequestHead head;
};

Parsed Request(std::string_view bytes, const HeadLimits& limits = {}) {
  Parsed parsed;
  parsed.result = ParseRequestHead(bytes, limits, parsed.head);
  return parsed;
}

int ErrorOf(std::string_view fields) {
  const std::string bytes = "POST / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
  return Request(bytes).result.error_status;
}

int LineError(std::string_view line) {
  const std::string bytes = std::string(line) + "\r\nHost: a\r\n\r\n";
  return Request(bytes).result.error_status;
}

TEST(RequestHead, IsReadInFull) {
  const std::string_view bytes =
      "POST /v1/pay?x=1 HTTP/1.1\r\nHost: example.org\r\nX-API-Key:  k1 \r\n"
      "Content-Length: 12\r\nExpect: 100-continue\r\n\r\nhello world!";
  const auto [result, head] = Request(bytes);
  ASSERT_TRUE(result.complete());
  EXPECT_EQ(bytes.substr(result.size), "hello world!");
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v1/pay?x=1");
  EXPECT_EQ(head.authority, "example.org");
  EXPECT_EQ(head.Find("x-api-key")->value, "k1");
  EXPECT_EQ(head.Find("x-api-key")->line, "X-API-Key:  k1 \r\n");
  EXPECT_EQ(head.framing().kind, Framing::Kind::kLength);
  EXPECT_EQ(head.framing().length, 12U);
  EXPECT_TRUE(head.expects_continue);
  EXPECT_FALSE(head.close);
  EXPECT_EQ(head.fields.size(), 4U);
}

TEST(RequestHead, NeedsAllOfIt) {
  const std::string_view whole = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto result = Request(whole.substr(0, size)).result;
    EXPECT_FALSE(result.complete() || result.failed()) << size;
  }
  EXPECT_EQ(Request(whole).result.size, whole.size());
}

TEST(RequestHead, SkipsAFewEmptyLinesBeforeIt) {
  EXPECT_EQ(Request("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").result.size, 31U);
  EXPECT_EQ(Request("\r\n\r\n\r\n\r\n\r\n").result.error_status, 400);
}

TEST(RequestHead, RefusesAmbiguousLengths) {
  EXPECT_EQ(ErrorOf("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(ErrorOf("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(ErrorOf("Content-Length: 5\r\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(ErrorOf("Content-Length: 5\r\ncontent-length: 6\r\n"), 400);
  EXPECT_EQ(ErrorOf("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(ErrorOf("Transfer-Encoding: identity\r\n"), 400);
  EXPECT_EQ(ErrorOf("Transfer-Encoding: gzip, chunked\r\n"), 400);
  EXPECT_EQ(ErrorOf("Transfer-Encoding: xchunked\r\n"), 400);
  EXPECT_EQ(ErrorOf("Transfer-Encoding: \r\n"), 400);
}

// CGI and its descendants do not distinguish `_` from `-`, and some map all other signs to `_` too.
TEST(RequestHead, RefusesFieldsThatSomeServersTakeForOthers) {
  for (const char* name :
       {"Content_Length", "transfer_encoding", "Transfer_Encoding", "X_Forwarded_For",
        "X-Forwarded_Host", "x_forwarded-proto", "Transfer.Encoding", "content!length"}) {
    EXPECT_EQ(ErrorOf(std::string(name) + ": 5\r\n"), 400) << name;
  }
  for (const char* name : {"X_Request_Id", "X.Request.Id", "Content_Lengths", "_"}) {
    EXPECT_EQ(ErrorOf(std::string(name) + ": 5\r\n"), 0) << name;
  }
}

TEST(RequestHead, RefusesLengthsThatAreNoNumbers) {
  for (const std::string_view value :
       {"", "-1", "+5", "5 5", "5,5", "0x5", "5a", "9223372036854775808", "99999999999999999999"}) {
    EXPECT_EQ(ErrorOf("Content-Length: " + std::string(value) + "\r\n"), 400) << value;
  }
  // 2^63 - 1 is the largest.
  EXPECT_EQ(ErrorOf("Content-Length: 9223372036854775807\r\n"), 0);
  EXPECT_EQ(ErrorOf("Content-Length: 005\r\n"), 0);
}

TEST(RequestHead, RefusesMalformedFields) {
  EXPECT_EQ(ErrorOf("X-A : 1\r\n"), 400);            // space before the colon
  EXPECT_EQ(ErrorOf("X-A: 1\r\n folded\r\n"), 400);  // a folded line
  EXPECT_EQ(ErrorOf("X-A\r\n"), 400);                // no colon
  EXPECT_EQ(ErrorOf(": 1\r\n"), 400);                // no name
  EXPECT_EQ(ErrorOf("X-A: 1\nX-B: 2\r\n"), 400);     // a bare LF
  EXPECT_EQ(ErrorOf("X-A: 1\rX-B: 2\r\n"), 400);     // a bare CR
  EXPECT_EQ(ErrorOf("X-A: a\x01\r\n"), 400);         // a control character
  EXPECT_EQ(ErrorOf(std::string_view("X-A: \0\r\n", 8)), 400);
  EXPECT_EQ(ErrorOf("X(A): 1\r\n"), 400);
  EXPECT_EQ(ErrorOf("X-A: a\tb\x80\r\n"), 0);
  EXPECT_EQ(ErrorOf("X-A:\r\n"), 0);
}

TEST(RequestHead, RefusesMalformedRequestLines) {
  EXPECT_EQ(LineError("GET /"), 400);
  EXPECT_EQ(LineError("GET  / HTTP/1.1"), 400);
  EXPECT_EQ(LineError("GET / HTTP/1.1 "), 400);
  EXPECT_EQ(LineError("G@T / HTTP/1.1"), 400);
  EXPECT_EQ(LineError(" GET / HTTP/1.1"), 400);
  EXPECT_EQ(LineError("GET /\x7f HTTP/1.1"), 400);
  EXPECT_EQ(LineError("GET relative HTTP/1.1"), 400);
  EXPECT_EQ(LineError("GET / HTTP/2.0"), 505);
  EXPECT_EQ(LineError("GET / http/1.1"), 400);
  EXPECT_EQ(LineError("CONNECT a:80 HTTP/1.1"), 501);
  EXPECT_EQ(LineError("OPTIONS * HTTP/1.1"), 0);
}

TEST(RequestHead, TabsAroundAValueAreNotPartOfIt) {
  const auto parsed = Request("GET / HTTP/1.1\r\nHost: a\r\nX-Key:\t a\tb \t\r\n\r\n");
  ASSERT_TRUE(parsed.result.complete());
  EXPECT_EQ(parsed.head.Find("x-key")->value, "a\tb");
}

TEST(RequestHead, RefusesAnEmptyTargetAndALoneCarriageReturn) {
  EXPECT_EQ(LineError("GET  HTTP/1.1"), 400);
  EXPECT_EQ(LineError("\rGET / HTTP/1.1"), 400);
}

TEST(RequestHead, TellsNonsenseAtOnce) {
  EXPECT_EQ(Request("\x16\x03\x01").result.error_status, 400);  // the start of TLS
}

TEST(RequestHead, RefusesAHostThatIsMoreThanAHost) {
  for (const std::string host :
       {"a/v1/pay", "a/v1/pay?", "a?x", "a#x", "u@a", "a\\b", "<a>", "a|b", "\"a\""}) {
    EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n").result.error_status, 400)
        << host;
  }
  EXPECT_EQ(Request("GET http://a\\b/x HTTP/1.1\r\nHost: a\r\n\r\n").result.error_status, 400);
  for (const std::string host :
       {"a.example:8080", "[2001:db8::1]:443", "a_b-c~d", "a%20b", "127.0.0.1"}) {
    EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n").head.authority, host);
  }
}

TEST(RequestHead, WantsExactlyOneHost) {
  EXPECT_EQ(Request("GET / HTTP/1.1\r\n\r\n").result.error_status, 400);
  EXPECT_EQ(ErrorOf("Host: b\r\n"), 400);
  EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost: a b\r\n\r\n").result.error_status, 400);
  EXPECT_TRUE(Request("GET / HTTP/1.0\r\n\r\n").result.complete());
}

TEST(RequestHead, BringsAnAbsoluteTargetIntoOriginForm) {
  const auto [result, head] = Request("GET http://b:81/x?y HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(result.complete());
  EXPECT_EQ(head.target, "/x?y");
  EXPECT_EQ(head.authority, "b:81");
  EXPECT_EQ(Request("GET http://b HTTP/1.1\r\nHost: a\r\n\r\n").head.target, "/");
  EXPECT_EQ(LineError("GET ftp://b/ HTTP/1.1"), 400);
  EXPECT_EQ(LineError("GET http://u@b/ HTTP/1.1"), 400);
  EXPECT_EQ(LineError("GET http:///x HTTP/1.1"), 400);
}

TEST(RequestHead, KnowsWhetherTheConnectionStays) {
  EXPECT_TRUE(Request("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n").head.close);
  EXPECT_TRUE(Request("GET / HTTP/1.0\r\n\r\n").head.close);
  EXPECT_FALSE(Request("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").head.close);
  EXPECT_TRUE(Request("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, close\r\n\r\n").head.close);
}

TEST(RequestHead, KnowsAnUpgrade) {
  const std::string_view start = "GET / HTTP/1.1\r\nHost: a\r\n";
  const auto upgrade = [&](std::string_view fields) {
    return Request(std::string(start) + std::string(fields) + "\r\n").head.upgrade;
  };
  EXPECT_TRUE(upgrade("Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"));
  EXPECT_FALSE(upgrade("Connection: Upgrade\r\n"));
  EXPECT_FALSE(upgrade("Upgrade: websocket\r\n"));
}

TEST(RequestHead, KnowsNominatedFields) {
  const auto head = Request("GET / HTTP/1.1\r\nHost: a\r\nConnection: X-A, x-b\r\n\r\n").head;
  EXPECT_TRUE(head.Nominates("x-a"));
  EXPECT_TRUE(head.Nominates("X-B"));
  EXPECT_FALSE(head.Nominates("X-C"));
}

TEST(RequestHead, NominatesAFewFieldsOnly) {
  const auto connection = [](std::size_t count) {
    std::string value = "a";
    for (std::size_t i = 1; i < count; ++i) value += ",a";
    return "Connection: " + value + "\r\n";
  };
  EXPECT_EQ(ErrorOf(connection(kMaxNominated)), 0);
  EXPECT_EQ(ErrorOf(connection(kMaxNominated + 1)), 400);
  EXPECT_EQ(ErrorOf(connection(kMaxNominated) + connection(1)), 400);
  EXPECT_EQ(ErrorOf("Connection: a" + std::string(kMaxNominated, ',') + "\r\n"), 400);
}

TEST(RequestHead, IsBounded) {
  const HeadLimits limits{.bytes = 256, .target_bytes = 64, .fields = 3};
  const std::string start = "GET / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(Request(start + "X: " + std::string(300, 'x'), limits).result.error_status, 431);
  EXPECT_EQ(Request(start + "A:\r\nB:\r\nC:\r\n\r\n", limits).result.error_status, 431);
  EXPECT_TRUE(Request(start + "A:\r\nB:\r\n\r\n", limits).result.complete());
  const std::string path(65, 'x');
  EXPECT_EQ(Request("GET /" + path + " HTTP/1.1\r\nHost: a\r\n\r\n", limits).result.error_status,
            414);
  EXPECT_EQ(Request("GET /" + std::string(150, 'x'), limits).result.error_status, 414);
}

TEST(RequestHead, RefusesChunkedInHttp10) {
  EXPECT_EQ(Request("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").result.error_status,
            400);
}

Framing ResponseFraming(std::string_view bytes, bool to_head = false) {
  ResponseHead head;
  const HeadResult result = ParseResponseHead(bytes, {}, head);
  EXPECT_TRUE(result.complete()) << bytes;
  return head.framing(to_head);
}

TEST(ResponseHead, FramesItsBody) {
  using Kind = Framing::Kind;
  EXPECT_EQ(ResponseFraming("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n").length, 7U);
  EXPECT_EQ(ResponseFraming("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").kind,
            Kind::kChunked);
  EXPECT_EQ(ResponseFraming("HTTP/1.1 200 OK\r\n\r\n").kind, Kind::kUntilClose);
  EXPECT_EQ(ResponseFraming("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").kind, Kind::kNone);
  EXPECT_EQ(ResponseFraming("HTTP/1.1 204 No Content\r\n\r\n").kind, Kind::kNone);
  EXPECT_EQ(ResponseFraming("HTTP/1.1 304 x\r\nContent-Length: 7\r\n\r\n").kind, Kind::kNone);
  EXPECT_EQ(ResponseFraming("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", true).kind,
            Kind::kNone);
}

TEST(ResponseHead, RefusesWhatIsAmbiguousOrMalformed) {
  ResponseHead head;
  for (const std::string_view bytes :
       {"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 7\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n", "ICY 200 OK\r\n\r\n", "HTTP/1.1 200 OK\nA: b\r\n\r\n",
        "HTTP/1.1 200 O\rK\r\n\r\n"}) {
    EXPECT_EQ(ParseResponseHead(bytes, {}, head).error_status, 502) << bytes;
  }
  EXPECT_TRUE(ParseResponseHead("HTTP/1.1 200\r\n\r\n", {}, head).complete());
}

TEST(RequestHead, TakesTheAuthorityOfAnAbsoluteTarget) {
  EXPECT_EQ(Request("GET HTTPS://b/x HTTP/1.1\r\nHost: a\r\n\r\n").head.authority, "b");
  EXPECT_EQ(LineError("GET http://b?x HTTP/1.1"), 400);
  EXPECT_EQ(LineError("GET http://b#x HTTP/1.1"), 400);
  EXPECT_EQ(LineError("GET http:b HTTP/1.1"), 400);
  EXPECT_EQ(Request("GET / HTTP/1.1\r\nHost:\r\n\r\n").head.authority, "");
}

TEST(RequestHead, RefusesALineThatEndsInABareLf) {
  EXPECT_EQ(Request("GET / HTTP/1.1\nHost: a\n\n").result.error_status, 400);
  EXPECT_EQ(Request("GET / HTTP/1.1\n").result.error_status, 400);
  EXPECT_EQ(Request("\n").result.error_status, 400);
}

TEST(RequestHead, SaysWhatItsBodyIs) {
  const auto framing = [](std::string_view fields) {
    const std::string bytes = "POST / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
    return Request(bytes).head.framing();
  };
  EXPECT_EQ(framing("").kind, Framing::Kind::kNone);
  EXPECT_EQ(framing("Content-Length: 0\r\n").kind, Framing::Kind::kNone);
  EXPECT_EQ(framing("Transfer-Encoding: Chunked\r\n").kind, Framing::Kind::kChunked);
}

TEST(RequestHead, KnowsWhichMethodsMayBeRepeated) {
  for (const char* method : {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}) {
    RequestHead head;
    head.method = method;
    EXPECT_TRUE(head.idempotent()) << method;
  }
  for (const char* method : {"POST", "PATCH", "get"}) {
    RequestHead head;
    head.method = method;
    EXPECT_FALSE(head.idempotent()) << method;
  }
}

TEST(RequestHead, FindsTheNthFieldOfAName) {
  const auto head =
      Request("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nY: 2\r\nx: 3\r\nConnection:, ,\r\n\r\n").head;
  EXPECT_EQ(head.Find("X", 0)->value, "1");
  EXPECT_EQ(head.Find("X", 1)->value, "3");
  EXPECT_EQ(head.Find("X", 2), nullptr);
  EXPECT_FALSE(head.Nominates("x")) << "Connection names nothing";
  EXPECT_EQ(head.Find(FieldId::kUpgrade), nullptr);
}

TEST(RequestHead, KnowsFieldsByNameWhateverTheirCase) {
  const auto head = Request(
                        "GET / HTTP/1.1\r\nHOST: a\r\nproxy-Authorization: b\r\n"
                        "X-Something-Of-Ours-That-Is-Long: c\r\nVary: d\r\n\r\n")
                        .head;
  ASSERT_EQ(head.fields.size(), 4U);
  EXPECT_EQ(head.fields[0].id, FieldId::kHost);
  EXPECT_EQ(head.fields[1].id, FieldId::kProxyAuthorization);
  EXPECT_EQ(head.fields[2].id, FieldId::kOther);
  EXPECT_EQ(head.fields[3].id, FieldId::kOther) << "as long as Host";
}

TEST(RequestHead, AnotherExpectationIsNotWaitedFor) {
  EXPECT_FALSE(Request("GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n").head.expects_continue);
}

TEST(ResponseHead, NeedsAllOfItWithinItsBound) {
  ResponseHead head;
  const HeadResult part = ParseResponseHead("HTTP/1.1 200 OK\r\nA: b\r\n", {}, head);
  EXPECT_FALSE(part.complete() || part.failed());
  const HeadLimits tight{.bytes = 64};
  EXPECT_EQ(
      ParseResponseHead("HTTP/1.1 200 OK\r\nA: " + std::string(64, 'x'), tight, head).error_status,
      502);
}

TEST(ResponseHead, IsRefusedAtOnceIfItsLinesDoNotEndInCrlf) {
  ResponseHead head;
  EXPECT_EQ(ParseResponseHead("HTTP/1.1 200 OK\nA: b\n\n", {}, head).error_status, 502);
}

TEST(ResponseHead, HasNoBodyAfterASwitchOfProtocols) {
  EXPECT_EQ(ResponseFraming("HTTP/1.1 101 Switching Protocols\r\n\r\n").kind, Framing::Kind::kNone);
}

TEST(ResponseHead, RefusesOtherStatusLines) {
  ResponseHead head;
  for (const std::string_view bytes :
       {"HTTP/1.1-200 OK\r\n\r\n", "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 200-OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 O\x01K\r\n\r\n"}) {
    EXPECT_EQ(ParseResponseHead(bytes, {}, head).error_status, 502) << bytes;
  }
}

}  // namespace
}  // namespace weir::http
