#include "base/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(Url, ReadsEveryPart) {
  const Result<Url> url =
      ParseUrl("redis+cluster://al%40ice:p%3Aw@one:7000,two,[::1]:7001/limits%2F1?a=x%20y&b=&c");
  ASSERT_TRUE(url.ok()) << url.error().message;
  EXPECT_EQ(url->scheme, "redis+cluster");
  EXPECT_TRUE(url->has_user);
  EXPECT_EQ(url->user, "al@ice");
  EXPECT_EQ(url->password, "p:w");
  ASSERT_EQ(url->hosts.size(), 3U);
  EXPECT_EQ(url->hosts[0].name, "one");
  EXPECT_EQ(url->hosts[0].port, 7000);
  EXPECT_EQ(url->hosts[1].name, "two");
  EXPECT_EQ(url->hosts[1].port, 0);
  EXPECT_EQ(url->hosts[2].name, "::1");
  EXPECT_EQ(url->hosts[2].port, 7001);
  EXPECT_EQ(url->path, "limits/1");
  EXPECT_THAT(url->options, ElementsAre(Pair("a", "x y"), Pair("b", ""), Pair("c", "")));
}

TEST(Url, PartsMayBeMissing) {
  const Result<Url> url = ParseUrl("mysql:///limits?socket=/run/db.sock");
  ASSERT_TRUE(url.ok()) << url.error().message;
  EXPECT_FALSE(url->has_user);
  EXPECT_THAT(url->hosts, IsEmpty());
  EXPECT_EQ(url->path, "limits");
  EXPECT_THAT(ParseUrl("mysql://")->hosts, IsEmpty());
}

TEST(Url, PasswordsMayHoldWhatTheyOftenHold) {
  const Result<Url> url = ParseUrl("rediss://:a/b+c@d=@cache.example:6380/2");
  ASSERT_TRUE(url.ok()) << url.error().message;
  EXPECT_EQ(url->user, "");
  EXPECT_EQ(url->password, "a/b+c@d=");
  EXPECT_EQ(url->hosts.at(0).name, "cache.example");
  EXPECT_EQ(url->path, "2");
}

TEST(Url, AWebAddressMayHaveAnAtInItsPath) {
  const Result<Url> url = ParseUrl("https://hooks.example/users/@all");
  ASSERT_TRUE(url.ok()) << url.error().message;
  EXPECT_FALSE(url->has_user);
  EXPECT_EQ(url->hosts.at(0).name, "hooks.example");
  EXPECT_EQ(url->path, "users/@all");
}

TEST(Url, KnowsAServerAndNoMore) {
  EXPECT_TRUE(ParseUrl("http://127.0.0.1:8080")->is_origin());
  EXPECT_TRUE(ParseUrl("http://127.0.0.1:8080/")->is_origin());
  for (const char* more : {"http://u@h", "http://h/x", "http://h?x=1", "http://h,i", "http://"}) {
    EXPECT_FALSE(ParseUrl(more)->is_origin()) << more;
  }
}

TEST(Url, RefusesWhatItCannotRead) {
  for (const char* text : {"",
                           "redis:",
                           "://h",
                           "re dis://h",
                           "redis://h:0",
                           "redis://h:65536",
                           "redis://h:",
                           "redis://h:1x",
                           "redis://h:+1",
                           "redis://[::1",
                           "redis://[::1]x",
                           "redis://[]",
                           "redis://u%4@h",
                           "redis://u%zz@h",
                           "redis://h,",
                           "redis://,h",
                           "redis://a b",
                           "redis://h#x",
                           "redis://h/%00",
                           "redis://h?a=%0",
                           "redis://h\n",
                           "redis://[a]b]"}) {
    EXPECT_FALSE(ParseUrl(text).ok()) << text;
  }
  EXPECT_FALSE(ParseUrl("redis://" + std::string(300, 'h')).ok());
  EXPECT_FALSE(ParseUrl("redis://h/" + std::string(9000, 'p')).ok());
}

TEST(Url, ErrorsRepeatNothing) {
  const Result<Url> url = ParseUrl("redis://user:hunter2@hunter2:hunter2/hunter2?hunter2=hunter2");
  ASSERT_FALSE(url.ok());
  EXPECT_EQ(url.error().message, "invalid port (1 to 65535)");
}

TEST(Url, SecretsAreNotShown) {
  EXPECT_EQ(WithoutSecrets("postgres://me:p@ss@db:5432/weir?password=x"),
            "postgres://***@db:5432/weir?***");
  EXPECT_EQ(WithoutSecrets("redis://:with/slash@cache/1"), "redis://***@cache/1");
  EXPECT_EQ(WithoutSecrets("redis://cache:6379"), "redis://cache:6379");
  EXPECT_EQ(WithoutSecrets("memory:"), "memory:");
}

TEST(Url, SchemesAndHosts) {
  EXPECT_EQ(SchemeOf("sqlite:/var/lib/weir.db"), "sqlite");
  EXPECT_EQ(SchemeOf("nothing"), "");
  EXPECT_EQ(JoinHostPort("h", 1), "h:1");
  EXPECT_EQ(JoinHostPort("::1", 65535), "[::1]:65535");
}

}  // namespace
}  // namespace weir
