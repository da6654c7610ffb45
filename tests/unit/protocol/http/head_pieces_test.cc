// Heads that arrive in pieces.

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "protocol/http/head.h"
#include "support/stopwatch.h"

namespace weir::http {
namespace {

TEST(RequestHead, IsFoundWhereverItIsCut) {
  const std::string text = "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    RequestHead head;
    EXPECT_FALSE(ParseRequestHead(text.substr(0, cut), {}, head).complete()) << cut;
    EXPECT_EQ(ParseRequestHead(text, {}, head).size, text.size()) << cut;
    EXPECT_EQ(ParseRequestHead(text, {}, head).size, text.size()) << "the next one";
  }
}

TEST(RequestHead, TakesNoLongerByteByByte) {
  // The end of the head could begin at each CR.
  const std::string text = "GET / HTTP/1.1\r\n" + std::string(32'000, '\r');
  RequestHead head;
  const test::Stopwatch stopwatch;
  for (std::size_t size = 1; size <= text.size(); ++size) {
    EXPECT_FALSE(ParseRequestHead(std::string_view(text).substr(0, size), {}, head).complete());
  }
  EXPECT_LT(stopwatch.elapsed(), std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace weir::http
