#include "filter/route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

namespace weir::filter {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// The names of a target; only "refused" if it is refused.
std::vector<std::string> Names(std::string_view target) {
  Routes routes;
  if (routes.Read(target) != nullptr) return {"refused"};
  return {routes.names().begin(), routes.names().end()};
}

TEST(Routes, LeaveAPlainPathAlone) {
  EXPECT_THAT(Names("/v1/pay"), ElementsAre("/v1/pay"));
  EXPECT_THAT(Names("/"), ElementsAre("/"));
  EXPECT_THAT(Names("/a.b/c-d_e~f/!$&'()*+,=:@"), ElementsAre("/a.b/c-d_e~f/!$&'()*+,=:@"));
  EXPECT_THAT(Names("/v1/.hidden"), ElementsAre("/v1/.hidden"));
  EXPECT_THAT(Names("/v1/...a/b"), ElementsAre("/v1/...a/b"));
  const std::string_view target = "/v1/pay?x=1";
  Routes routes;
  ASSERT_EQ(routes.Read(target), nullptr);
  EXPECT_EQ(routes.names().front().data(), target.data());  // no copy
}

TEST(Routes, DropTheQuery) {
  EXPECT_THAT(Names("/v1/pay?x=/../y"), ElementsAre("/v1/pay"));
  EXPECT_THAT(Names("/v1/pay?x=%2F..%2F#y"), ElementsAre("/v1/pay"));
}

TEST(Routes, WriteEscapesInOneSpelling) {
  EXPECT_THAT(Names("/v1/%70ay"), ElementsAre("/v1/pay"));
  EXPECT_THAT(Names("/v1/pay%21%2c"), ElementsAre("/v1/pay!,"));
  EXPECT_THAT(Names("/caf%c3%a9"), ElementsAre("/caf%C3%A9"));
  EXPECT_THAT(Names("/caf\xc3\xa9"), ElementsAre("/caf%C3%A9"));
  EXPECT_THAT(Names("/a{b}%20c"), ElementsAre("/a%7Bb%7D%20c"));
  EXPECT_THAT(Names("/100%25"), ElementsAre("/100%25"));
}

TEST(Routes, NameBothReadingsOfATrailingSlash) {
  EXPECT_THAT(Names("/v1/pay/"), UnorderedElementsAre("/v1/pay/", "/v1/pay"));
}

TEST(Routes, NameBothReadingsOfCapitals) {
  EXPECT_THAT(Names("/V1/Pay"), UnorderedElementsAre("/V1/Pay", "/v1/pay"));
  EXPECT_THAT(Names("/%50ay%20X"), UnorderedElementsAre("/Pay%20X", "/pay%20x"));
  EXPECT_THAT(Names("/A%C3%A9/"), Contains("/a%C3%A9"));
}

TEST(Routes, NameEveryReadingOfDoubledSlashes) {
  EXPECT_THAT(Names("/v1//pay"), UnorderedElementsAre("/v1//pay", "/v1/pay"));
  // A relative reference that begins with two slashes names a host first.
  EXPECT_THAT(Names("//v1/pay"), UnorderedElementsAre("//v1/pay", "/v1/pay", "/pay"));
  EXPECT_THAT(Names("//"), UnorderedElementsAre("//", "/"));
  EXPECT_THAT(Names("//v1"), UnorderedElementsAre("//v1", "/v1", "/"));
  EXPECT_THAT(Names("//Host/V1/"), testing::SizeIs(Routes::kMax));
}

TEST(Routes, NameBothReadingsOfAnEncodedSlash) {
  EXPECT_THAT(Names("/v1%2Fpay"), UnorderedElementsAre("/v1%2Fpay", "/v1/pay"));
  EXPECT_THAT(Names("/v1/pay%2f"), UnorderedElementsAre("/v1/pay%2F", "/v1/pay/", "/v1/pay"));
}

TEST(Routes, NameBothReadingsOfParameters) {
  EXPECT_THAT(Names("/v1/pay;x=1"), UnorderedElementsAre("/v1/pay;x=1", "/v1/pay"));
  EXPECT_THAT(Names("/v1;a/pay;b"), UnorderedElementsAre("/v1;a/pay;b", "/v1/pay"));
  EXPECT_THAT(Names("/v1/pay%3Bx"), UnorderedElementsAre("/v1/pay%3Bx", "/v1/pay"));
  EXPECT_THAT(Names("/v1/pay/;x"), UnorderedElementsAre("/v1/pay/;x", "/v1/pay/", "/v1/pay"));
}

TEST(Routes, NameBothReadingsOfAnEncodedEndOfThePath) {
  EXPECT_THAT(Names("/v1/pay%3Fx"), UnorderedElementsAre("/v1/pay%3Fx", "/v1/pay"));
  EXPECT_THAT(Names("/v1/pay%23x"), UnorderedElementsAre("/v1/pay%23x", "/v1/pay"));
}

TEST(Routes, TakeThePathOfAnAbsoluteTarget) {
  EXPECT_THAT(Names("http://example.com/v1/pay?x"), ElementsAre("/v1/pay"));
  EXPECT_THAT(Names("HTTPS://example.com"), ElementsAre("/"));
  EXPECT_THAT(Names("http://example.com?/v1"), ElementsAre("/"));
  EXPECT_THAT(Names("*"), ElementsAre("*"));
  EXPECT_THAT(Names(""), IsEmpty());
}

TEST(Routes, AreRefusedWhereReadingsCannotBeListed) {
  for (const char* target : {
           "/v1/../pay",
           "/v1/./pay",
           "/..",
           "/.",
           "/v1/%2e%2E/pay",
           "/v1/x%2F..%2Fpay",
           "/v1/..%2fpay",
           "/v1/..;/pay",
           "/v1/..;x=1/pay",
           "/v1/..%3B/pay",
           "/v1/%2e;/pay",
           "/v1/..%3Fx",  // dot segments, as servers may interpret them
           "/v1\\pay",
           "/v1%5Cpay",
           "/v1/..%5c/pay",  // backslashes
           "/v1/pay%00",
           "/v1/pay%0a",
           "/v1/%7f",
           "/v1/\x01",  // control characters
           "/v1/pay#x",
           "/v1#/pay",
           "http://example.com#/v1",  // fragments
           "/v1/%",
           "/v1/%4",
           "/v1/%4z",
           "/v1/%zz",  // invalid escapes
           "/v1%252Fpay",
           "/v1/%2570ay",
           "/v1%25%32%46pay",  // encoded twice
           "/v1%c0%afpay",
           "/v1/%e0%80%af",
           "/caf%e9",
           "/%ed%a0%80",
           "/\xff",  // not UTF-8
           "//v1//pay",
           "/v1//a%2Fb",
           "/v1/a%2Fb;c",
           "/v1//pay;x",
           "/v1/a;b%3Bc",
           "/v1/a%2F/b",
           "/v1/;x/pay",
           "/v1/a%3Fb%23c",  // several kinds at once
           "v1/pay",
           "ftp://example.com/",
           "http:///v1",
           "http:/v1/pay",
           "http8//example.com/",
           "example.com:443",
       }) {
    EXPECT_THAT(Names(target), ElementsAre("refused")) << target;
  }
}

/// Of reading a path of this many bytes, in nanoseconds, undisturbed.
double TimeOfReading(std::size_t bytes) {
  std::string path;
  while (path.size() < bytes) path += "/%20";
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5; ++i) {
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(Routes().Read(path), nullptr);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - before;
    best = std::min(best, took.count());
  }
  return best;
}

// 16 times as long: about 16 times, not 256.
TEST(Routes, OfALongPathTakeNoLongerThanItsLength) {
  EXPECT_LT(TimeOfReading(64'000), 64 * TimeOfReading(4'000));
}

TEST(Routes, OfOneTargetReplaceThoseOfAnother) {
  Routes routes;
  ASSERT_EQ(routes.Read("//Host/V1/"), nullptr);
  ASSERT_NE(routes.Read("/../x"), nullptr);
  EXPECT_THAT(routes.names(), IsEmpty());
  ASSERT_EQ(routes.Read("/v1"), nullptr);
  EXPECT_THAT(routes.names(), ElementsAre("/v1"));
}

}  // namespace
}  // namespace weir::filter
