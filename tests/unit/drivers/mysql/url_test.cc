#include "drivers/mysql/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::mysql {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MysqlUrl, NamesEverything) {
  const Target target = *ParseUrl("mysql://weir:s%40cret%2f@db.example:3307/limits?tls_ca=/ca.pem");
  EXPECT_EQ(target.host, "db.example");
  EXPECT_EQ(target.port, 3307);
  EXPECT_EQ(target.user, "weir");
  EXPECT_EQ(target.password, "s@cret/");
  EXPECT_EQ(target.database, "limits");
  EXPECT_TRUE(target.tls);
  EXPECT_EQ(target.tls_ca, "/ca.pem");
}

TEST(MysqlUrl, HasDefaults) {
  const Target target = *ParseUrl("mariadb://db/limits");
  EXPECT_EQ(target.port, 3306);
  EXPECT_EQ(target.user, "");
  EXPECT_FALSE(target.tls);
}

TEST(MysqlUrl, TakesSocketsAndIpv6) {
  const Target target = *ParseUrl("mysql://weir@/limits?socket=%2Frun%2Fdb.sock&tls=required");
  EXPECT_EQ(target.socket, "/run/db.sock");
  EXPECT_TRUE(target.tls);
  EXPECT_EQ(ParseUrl("mysql://u@[::1]:3308/d")->host, "::1");
  EXPECT_EQ(ParseUrl("mysql://u@[::1]:3308/d")->port, 3308);
}

TEST(MysqlUrl, SaysWhatIsWrongAndKeepsSecrets) {
  for (const char* url :
       {"", "postgres://h/d", "mysql://", "mysql://h", "mysql:///d", "mysql://h:0/d",
        "mysql://h:65536/d", "mysql://h:x/d", "mysql://h/d?what=1", "mysql://h/d?tls=maybe",
        "mysql://[::1/d", "mysql://[::1]x/d", "mysql://hidden:hidden%4@h/d", "mysql://h/%00"}) {
    const Result<Target> target = ParseUrl(url);
    ASSERT_FALSE(target.ok()) << url;
    EXPECT_EQ(target.error().code, Code::kInvalidArgument) << url;
    EXPECT_THAT(target.error().message, HasSubstr("mysql://user:password@host:port/database"));
    EXPECT_THAT(target.error().message, Not(HasSubstr("hidden")));
  }
}

}  // namespace
}  // namespace weir::mysql
