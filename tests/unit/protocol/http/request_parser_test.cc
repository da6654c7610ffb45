#include "protocol/http/request_parser.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace weir::http {
namespace {

using Outcome = RequestParser::Outcome;

std::span<char> Span(std::string& text) { return {text.data(), text.size()}; }

TEST(RequestParser, ReadsARequestWithABody) {
  RequestParser parser({});
  std::string text =
      "POST /v1/check?http_status=1#x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
      "X-Thing:  some value \r\n\r\nabcGET";
  ASSERT_EQ(parser.Parse(Span(text)), Outcome::kComplete);
  EXPECT_EQ(parser.consumed(), text.size() - 3);
  const Request& request = parser.request();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/v1/check");
  EXPECT_EQ(request.query, "http_status=1");
  EXPECT_EQ(request.body, "abc");
  EXPECT_EQ(request.Find("x-thing"), "some value");
  EXPECT_TRUE(request.keep_alive);
}

// The same bytes must be parsed the same however they are split and wherever the buffer moves.
TEST(RequestParser, ReadsByteByByteFromAMovingBuffer) {
  const std::string text =
      "POST http://h/a?b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: "
      "close\r\n\r\n"
      "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
  RequestParser parser({});
  std::vector<std::string> buffers;
  buffers.reserve(text.size());
  std::string joined;  // what the parser left in the buffer so far: bodies are joined in place
  for (std::size_t size = 1; size <= text.size(); ++size) {
    joined += text[size - 1];
    buffers.push_back(joined);
    buffers.back().reserve(200);
    const Outcome outcome = parser.Parse(Span(buffers.back()));
    ASSERT_EQ(outcome, size == text.size() ? Outcome::kComplete : Outcome::kNeedMore) << size;
    joined = buffers.back();
  }
  const Request& request = parser.request();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/a");
  EXPECT_EQ(request.query, "b");
  EXPECT_EQ(request.body, "abcde");
  EXPECT_FALSE(request.keep_alive);
  EXPECT_EQ(request.Find("HOST"), "a");
  EXPECT_EQ(parser.consumed(), text.size());
}

TEST(RequestParser, ReadsPipelinedRequests) {
  RequestParser parser({});
  std::string text = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.0\r\n\r\n";
  ASSERT_EQ(parser.Parse(Span(text)), Outcome::kComplete);
  EXPECT_EQ(parser.request().path, "/1");
  EXPECT_TRUE(parser.request().keep_alive);
  const std::size_t first = parser.consumed();
  parser.Next();
  ASSERT_EQ(parser.Parse(Span(text).subspan(first)), Outcome::kComplete);
  EXPECT_EQ(parser.request().path, "/2");
  EXPECT_FALSE(parser.request().keep_alive);
  EXPECT_TRUE(parser.request().headers.empty());
}

TEST(RequestParser, TakesAHostWithoutAPathForItsRoot) {
  RequestParser parser({});
  std::string head = "POST http://a HTTP/1.1\r\nContent-Length: 1\r\n\r\n";
  ASSERT_EQ(parser.Parse(Span(head)), Outcome::kNeedMore);
  std::string moved = head + "x";
  head.assign(head.size(), '?');
  ASSERT_EQ(parser.Parse(Span(moved)), Outcome::kComplete);
  EXPECT_EQ(parser.request().path, "/");
}

TEST(RequestParser, SeesThatTheClientWaitsForContinue) {
  RequestParser parser({});
  std::string text = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  ASSERT_EQ(parser.Parse(Span(text)), Outcome::kNeedMore);
  EXPECT_TRUE(parser.header_complete());
  EXPECT_TRUE(parser.expects_continue());
}

struct Failing {
  const char* name;
  std::string text;
  int status;
};

class RequestParserFailure : public ::testing::TestWithParam<Failing> {};

TEST_P(RequestParserFailure, IsAnswered) {
  RequestParser parser({.header_bytes = 1000, .headers = 5, .body_bytes = 10});
  std::string text = GetParam().text;
  ASSERT_EQ(parser.Parse(Span(text)), Outcome::kFailed);
  EXPECT_EQ(parser.failure_status(), GetParam().status);
  EXPECT_FALSE(parser.failure_message().empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, RequestParserFailure,
    ::testing::Values(
        Failing{"Garbage", "\x16\x03\x01\x02 hello\r\n\r\n", 400},
        Failing{"AnotherProtocol", "*3\r\n$6\r\nCL.THR", 400},
        Failing{"NoVersion", "GET /\r\n\r\n", 400},
        Failing{"Version2", "GET / HTTP/2.0\r\n\r\n", 505},
        Failing{"BadName", "GET / HTTP/1.1\r\nA b: c\r\n\r\n", 400},
        Failing{"Folded", "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400},
        Failing{"LongHeader", "GET / HTTP/1.1\r\nA: " + std::string(1000, 'x'), 431},
        Failing{"ManyHeaders", "GET / HTTP/1.1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\n\r\n",
                431},
        Failing{"LongBody", "POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n", 413},
        Failing{
            "LongChunks",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n9\r\n123456789",
            413},
        Failing{"TwoLengths", "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                400},
        Failing{"NegativeLength", "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
        Failing{"OtherCoding", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400},
        Failing{"Smuggled",
                "POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", 400}),
    [](const auto& test) { return test.param.name; });

TEST(RequestParser, TakesAnEmptyChunkedBodyByteByByte) {
  const std::string text = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  RequestParser parser({});
  std::string buffer;
  buffer.reserve(text.size() + 64);
  for (std::size_t size = 1; size <= text.size(); ++size) {
    buffer += text[size - 1];
    ASSERT_EQ(parser.Parse(Span(buffer)),
              size == text.size() ? Outcome::kComplete : Outcome::kNeedMore)
        << size;
  }
  EXPECT_EQ(parser.consumed(), text.size());
}

TEST(RequestParser, DoesNotWaitForContinueUnasked) {
  RequestParser parser({.header_bytes = 1000, .headers = 5, .body_bytes = 10});
  std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  ASSERT_EQ(parser.Parse(Span(chunked)), Outcome::kNeedMore);
  EXPECT_FALSE(parser.expects_continue());
}

TEST(RequestParser, TakesLargeBodiesOnlyWhereTheRouterSaysSo) {
  Router router;
  router.AddLarge("POST", "/batch", [](const Request&, const Reply&) {});
  router.Add("POST", "/one", [](const Request&, const Reply&) {});
  const ParserLimits limits{
      .header_bytes = 1000, .headers = 5, .body_bytes = 10, .large_body_bytes = 20};
  const auto takes = [&](const std::string& path, std::size_t size) {
    const std::string body(size, 'x');
    std::ostringstream chunk;
    chunk << "Transfer-Encoding: chunked\r\n\r\n" << std::hex << size << "\r\n";
    int taken = 0;
    for (const std::string& rest : {"Content-Length: " + std::to_string(size) + "\r\n\r\n" + body,
                                    chunk.str() + body + "\r\n0\r\n\r\n"}) {
      RequestParser parser(limits, &router);
      std::string text = "POST " + path + " HTTP/1.1\r\n" + rest;
      const Outcome outcome = parser.Parse(Span(text));
      EXPECT_EQ(parser.failure_status(), outcome == Outcome::kComplete ? 0 : 413);
      if (outcome == Outcome::kComplete) ++taken;
    }
    return taken;
  };
  EXPECT_EQ(takes("/batch", 20), 2);
  EXPECT_EQ(takes("/batch?x=1", 20), 2) << "a query changes nothing";
  EXPECT_EQ(takes("/batch", 21), 0);
  EXPECT_EQ(takes("/one", 10), 2);
  EXPECT_EQ(takes("/one", 11), 0);
  EXPECT_EQ(takes("/batch/", 11), 0) << "another path";
  EXPECT_EQ(takes("/", 11), 0);
}

TEST(RequestParser, AMalformedChunkIsToldApartFromALongOne) {
  RequestParser parser({});
  std::string text = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
  ASSERT_EQ(parser.Parse(Span(text)), Outcome::kFailed);
  EXPECT_EQ(parser.failure_status(), 400);
}

TEST(RequestParser, AnOldClientIsNotToldToContinue) {
  RequestParser parser({});
  std::string text = "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  ASSERT_EQ(parser.Parse(Span(text)), Outcome::kNeedMore);
  EXPECT_FALSE(parser.expects_continue());
}

}  // namespace
}  // namespace weir::http
