#include "drivers/mysql/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::mysql {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MysqlUrl, NamesEverything) {
  const Target target = *ParseUrl("mysql://weir:s%40cret%2f@db.example:3307/limits?tls_ca=/ca.pem");
  ASSERT_EQ(target.endpoints.size(), 1u);
  EXPECT_EQ(target.endpoints[0].host, "db.example");
  EXPECT_EQ(target.endpoints[0].port, 3307);
  EXPECT_EQ(target.user, "weir");
  EXPECT_EQ(target.password, "s@cret/");
  EXPECT_EQ(target.database, "limits");
  EXPECT_EQ(target.tls, Tls::kVerified);
  EXPECT_EQ(target.tls_ca, "/ca.pem");
}

TEST(MysqlUrl, TakesSeveralHosts) {
  const Target target = *ParseUrl("mysql://weir@db1,db2:3307,[::1]:3308/limits");
  ASSERT_EQ(target.endpoints.size(), 3u);
  EXPECT_EQ(target.endpoints[0].host, "db1");
  EXPECT_EQ(target.endpoints[0].port, 3306);
  EXPECT_EQ(target.endpoints[1].port, 3307);
  EXPECT_EQ(target.endpoints[2].host, "::1");
}

TEST(MysqlUrl, TlsIsVerifiedUnlessItIsCalledInsecure) {
  EXPECT_EQ(ParseUrl("mysql://h/d")->tls, Tls::kOff);
  EXPECT_EQ(ParseUrl("mysql://h/d?tls=off")->tls, Tls::kOff);
  EXPECT_EQ(ParseUrl("mysql://h/d?tls=required")->tls, Tls::kVerified);
  EXPECT_EQ(ParseUrl("mysql://h/d?tls_cert=c&tls_key=k")->tls, Tls::kVerified);
  EXPECT_EQ(ParseUrl("mysql://h/d?tls=insecure-no-verify")->tls, Tls::kUnverified);
  EXPECT_EQ(ParseUrl("mysql://h/d?tls=insecure-no-verify&tls_ca=c")->tls, Tls::kUnverified);
}

TEST(MysqlUrl, HasDefaults) {
  const Target target = *ParseUrl("mariadb://db/limits");
  EXPECT_EQ(target.endpoints.at(0).port, 3306);
  EXPECT_EQ(target.user, "");
  EXPECT_EQ(target.tls, Tls::kOff);
}

TEST(MysqlUrl, TakesSocketsAndIpv6) {
  const Target target = *ParseUrl("mysql://weir@/limits?socket=%2Frun%2Fdb.sock");
  EXPECT_EQ(target.socket, "/run/db.sock");
  EXPECT_TRUE(target.endpoints.empty());
  EXPECT_EQ(ParseUrl("mysql://u@[::1]:3308/d")->endpoints.at(0).host, "::1");
  EXPECT_EQ(ParseUrl("mysql://u@[::1]:3308/d")->endpoints.at(0).port, 3308);
}

TEST(MysqlUrl, SaysWhatIsWrongAndKeepsSecrets) {
  for (const char* url : {"",
                          "postgres://h/d",
                          "mysql://",
                          "mysql://h",
                          "mysql:///d",
                          "mysql://h:0/d",
                          "mysql://h:65536/d",
                          "mysql://h:x/d",
                          "mysql://h/d?what=1",
                          "mysql://h/d?tls=maybe",
                          "mysql://h1,/d",
                          "mysql://,h2/d",
                          "mysql://h1,h2:x/d",
                          "mysql://h/d?socket=/s",
                          "mysql:///d?socket=/s&tls=required",
                          "mysql://h/d?tls_cert=c",
                          "mysql://h/d?tls_ca=",
                          "mysql://[::1/d",
                          "mysql://[::1]x/d",
                          "mysql://hidden:hidden%4@h/d",
                          "mysql://h/%00"}) {
    const Result<Target> target = ParseUrl(url);
    ASSERT_FALSE(target.ok()) << url;
    EXPECT_EQ(target.error().code, Code::kInvalidArgument) << url;
    EXPECT_THAT(target.error().message, HasSubstr("mysql://user:password@host:port/database"));
    EXPECT_THAT(target.error().message, Not(HasSubstr("hidden")));
  }
}

}  // namespace
}  // namespace weir::mysql
