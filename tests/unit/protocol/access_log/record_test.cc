#include "protocol/access_log/record.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::access_log {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

TEST(AccessLog, ReadsNginxCombined) {
  LineParser parser(Format::kAuto);
  const auto record = parser.Parse(
      R"(192.0.2.1 - alice [01/Jan/1970:01:00:10 +0100] "GET /v1/pay?id=1 HTTP/1.1" 200 2326 )"
      R"("http://a/" "Mozilla \"x\"")");
  ASSERT_TRUE(record);
  EXPECT_EQ(parser.format(), Format::kCombined);
  EXPECT_EQ(record->at, 10 * kSecond);  // 01:00:10 an hour east of Greenwich
  EXPECT_EQ(record->ip, "192.0.2.1");
  EXPECT_EQ(record->user, "alice");
  EXPECT_EQ(record->method, "GET");
  EXPECT_EQ(record->route, "/v1/pay");
}

TEST(AccessLog, ReadsEnvoysDefault) {
  LineParser parser(Format::kAuto);
  const auto record = parser.Parse(
      R"([1970-01-01T00:00:01.500Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 )"
      R"("203.0.113.9, 10.0.35.28" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80")");
  ASSERT_TRUE(record);
  EXPECT_EQ(parser.format(), Format::kEnvoy);
  EXPECT_EQ(record->at, 3 * kSecond / 2);
  EXPECT_EQ(record->ip, "10.0.35.28");  // what Envoy added, not what the client claimed
  EXPECT_EQ(record->method, "POST");
  EXPECT_EQ(record->route, "/api/v1/locations");
  EXPECT_EQ(record->host, "locations");
}

TEST(AccessLog, ReadsIstiosDefault) {
  LineParser parser(Format::kAuto);
  const auto record = parser.Parse(
      R"([1970-01-01T00:00:02.000Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 5 4 )"
      R"("203.0.113.9,10.0.0.1" "curl/8" "84961386" "httpbin:8000" "10.44.1.27:80" outbound|8000)");
  ASSERT_TRUE(record);
  EXPECT_EQ(parser.format(), Format::kEnvoy);
  EXPECT_EQ(record->at, 2 * kSecond);
  EXPECT_EQ(record->ip, "10.0.0.1");
  EXPECT_EQ(record->route, "/status/418");
  EXPECT_EQ(record->host, "httpbin:8000");
}

TEST(AccessLog, ReadsJsonLinesByTheNamesThatServersGive) {
  LineParser parser(Format::kAuto);
  auto record = parser.Parse(
      R"({"time":"1970-01-01T00:00:02Z","remote_addr":"::1","request":"PUT /a?b HTTP/1.0","x":[1]})");
  ASSERT_TRUE(record);
  EXPECT_EQ(parser.format(), Format::kJson);
  EXPECT_EQ(record->at, 2 * kSecond);
  EXPECT_EQ(record->ip, "::1");
  EXPECT_EQ(record->route, "/a");
  record = parser.Parse(R"({"ts":1.25,"client_ip":"a","method":"GET","path":"/p?q","user":"-"})");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->at, 5 * kSecond / 4);
  EXPECT_EQ(record->user, "");
  EXPECT_EQ(record->route, "/p");
  // A number this large is in milliseconds: 1,700,000,000 s.
  EXPECT_EQ(parser.Parse(R"({"ts":1700000000000,"ip":"a"})")->at, 1'700'000'000 * kSecond);
}

TEST(AccessLog, MalformedLinesAreNothing) {
  for (const Format format : {Format::kCombined, Format::kJson, Format::kEnvoy, Format::kAuto}) {
    LineParser parser(format);
    for (const std::string& line :
         {std::string(), std::string("x"), std::string("\0\0\0", 3), std::string("{"),
          std::string("{}"), std::string("[] \"\" "), std::string(R"({"ts":"x","ip":"a"})"),
          std::string(R"({"ip":"a"})"), std::string(R"({"ts":-1,"ip":"a"})"),
          std::string(R"({"ts":1,"ip":"a"} trailing)"),
          std::string(R"(1.2.3.4 - - [32/Jan/1970:00:00:00 +0000] "GET / HTTP/1.1" 200 1)"),
          std::string(R"(1.2.3.4 - - [01/Jux/1970:00:00:00 +0000] "GET / HTTP/1.1" 200 1)"),
          std::string(R"(1.2.3.4 - - [01/Jan/1970:00:00:00 +0000] "GET" 200 1)"),
          std::string(R"(1.2.3.4 - - [01/Jan/1970:00:00:00 +0000] "GET / HTTP/1.1)"),
          std::string(R"([1970-01-01T00:00:00Z] "GET / HTTP/1.1" 200)")}) {
      EXPECT_FALSE(parser.Parse(line)) << line;
    }
    EXPECT_FALSE(parser.Parse(std::string(kMaxLine + 1, 'x')));
  }
}

TEST(AccessLog, TheFormatIsThatOfTheFirstGoodLine) {
  LineParser parser(Format::kAuto);
  EXPECT_FALSE(parser.Parse("# a comment"));
  EXPECT_EQ(parser.format(), Format::kAuto);
  EXPECT_TRUE(parser.Parse(R"({"ts":1,"ip":"a"})"));
  EXPECT_FALSE(parser.Parse(R"(1.2.3.4 - - [01/Jan/1970:00:00:00 +0000] "GET / HTTP/1.1" 200 1)"));
}

TEST(AccessLog, EveryPlaceOfACombinedTimeIsChecked) {
  const std::string good = "01/Jan/1970:00:00:05 +0000";
  const auto line = [](const std::string& time) {
    return "1.2.3.4 - - [" + time + R"(] "GET / HTTP/1.1" 200 1)";
  };
  LineParser parser(Format::kCombined);
  ASSERT_TRUE(parser.Parse(line(good)));
  EXPECT_EQ(parser.Parse(line("31/Dec/1969:23:00:05 -0100"))->at, 5 * kSecond);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string wrong = good;
    wrong[i] = 'x';
    EXPECT_FALSE(parser.Parse(line(wrong))) << wrong;
  }
  EXPECT_FALSE(parser.Parse(line(good + "0")));
  EXPECT_FALSE(parser.Parse(line("01/anF/1970:00:00:05 +0000"))) << "between two months";
  EXPECT_FALSE(parser.Parse(line("01/Jan/2262:00:00:05 +0000"))) << "beyond nanoseconds";
}

TEST(AccessLog, WhatACombinedLineLacksMakesItMalformed) {
  LineParser parser(Format::kCombined);
  const std::string time = "[01/Jan/1970:00:00:05 +0000]";
  for (const std::string& line : {
           std::string("1.2.3.4"),
           std::string("1.2.3.4 -"),
           " - - " + time + R"( "GET / HTTP/1.1" 200)",         // no address
           std::string(R"(1.2.3.4 - - "GET / HTTP/1.1" 200)"),  // no time
           "1.2.3.4 - " + time + R"( "GET / HTTP/1.1" 200)",    // no user
           "1.2.3.4 - a-" + time + R"( "GET / HTTP/1.1" 200)",  // no space before the time
           std::string(R"(1.2.3.4 - - [01/Jan/1970:00:00:05 +0000 "GET / HTTP/1.1" 200)"),
           "1.2.3.4 - - " + time + R"("GET / HTTP/1.1" 200)",
           "1.2.3.4 - - " + time + " GET / HTTP/1.1 200",
           "1.2.3.4 - - " + time + R"( " / HTTP/1.1" 200)",
           "1.2.3.4 - - " + time + R"( "GET ?a HTTP/1.1" 200)",
           "1.2.3.4 - - " + time + R"( "GET  HTTP/1.1" 200)",
           "1.2.3.4 - - " + time + R"( "GET / HTTP/1.1")",
       }) {
    EXPECT_FALSE(parser.Parse(line)) << line;
  }
  const std::string named = "1.2.3.4 - Ada B " + time + R"( "GET /\"a HTTP/1.1" 200)" + "\r";
  const auto record = parser.Parse(named);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->user, "Ada B");
  EXPECT_EQ(record->route, R"(/\"a)");
}

TEST(AccessLog, AnEnvoyLineMayEndAfterTheAddress) {
  LineParser parser(Format::kEnvoy);
  const std::string begin = R"([1970-01-01T00:00:01Z] "GET /a HTTP/2" 200 - 0 0 1 1 )";
  EXPECT_EQ(parser.Parse(begin + R"("203.0.113.9")")->ip, "203.0.113.9");
  EXPECT_EQ(parser.Parse(begin + R"("-")")->ip, "");
  EXPECT_EQ(parser.Parse(begin + R"("::1" "agent")")->host, "");
  EXPECT_EQ(parser.Parse(begin + R"("::1" "agent" "id")")->host, "");
  EXPECT_EQ(parser.Parse(begin + R"("::1" "agent" "id" host)")->host, "");
  EXPECT_EQ(parser.Parse(begin + R"("::1" "agent"  "h")")->host, "") << "an id is missing";
  EXPECT_EQ(parser.Parse(begin + R"("::1" "agent" "id" "-")")->host, "");
  EXPECT_EQ(parser.Parse(begin + R"("::1" "agent" "id" "h")")->host, "h");
  for (const std::string& line : {
           std::string(R"([1970-01-01T00:00:01Z "GET /a HTTP/2" 200)"),
           std::string(R"([yesterday] "GET /a HTTP/2" 200 "::1")"),
           std::string(R"([1970-01-01T00:00:01Z]"GET /a HTTP/2" 200 "::1")"),
           std::string(R"([1970-01-01T00:00:01Z] GET /a HTTP/2 200 "::1")"),
           std::string(R"([1970-01-01T00:00:01Z] "GET" 200 "::1")"),
           std::string(R"([1970-01-01T00:00:01Z] "GET /a HTTP/2")"),
           begin + R"("::1)",
           begin + R"("-" 0 135 5 4 )",
           begin + R"("-" 0 135 5 4 "::1)",
       }) {
    EXPECT_FALSE(parser.Parse(line)) << line;
  }
}

TEST(AccessLog, TimesOfJsonLinesAreTextsOrNumbers) {
  LineParser parser(Format::kJson);
  EXPECT_EQ(parser.Parse(R"({"msec":"12.5","ip":"a"})")->at, 25 * kSecond / 2);
  EXPECT_EQ(parser.Parse(R"({"ts":0,"uri":"/a"})")->at, 0);
  EXPECT_FALSE(parser.Parse(R"({"ts":true,"ip":"a"})"));
  EXPECT_FALSE(parser.Parse(R"({"ts":"-1","ip":"a"})"));
  EXPECT_FALSE(parser.Parse(R"({"ts":9e12,"ip":"a"})")) << "beyond nanoseconds";
  EXPECT_FALSE(parser.Parse(R"({"ts":1,"user":"a"})")) << "neither an address nor a route";
  EXPECT_FALSE(parser.Parse(R"([1])"));
}

TEST(AccessLog, FieldsOfJsonLinesThatAreNoTextsAreSkipped) {
  LineParser parser(Format::kJson);
  const auto record = parser.Parse(
      R"({"ts":1,"ip":"a","user":7,"host":"h","method":"GET","url":"/p?q","request":"odd"})");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->user, "");
  EXPECT_EQ(record->host, "h");
  EXPECT_EQ(record->method, "GET");
  EXPECT_EQ(record->route, "/p");
}

TEST(AccessLog, FormatsAreReadByTheNamesTheyAreShownWith) {
  for (const Format format : {Format::kAuto, Format::kCombined, Format::kJson, Format::kEnvoy}) {
    EXPECT_EQ(ParseFormat(FormatName(format)), format);
  }
  EXPECT_EQ(ParseFormat("common"), std::nullopt);
}

}  // namespace
}  // namespace weir::access_log
