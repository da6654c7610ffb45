#include "drivers/redis/url.h"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

TEST(RedisUrl, ReadsEveryPart) {
  const auto address = ParseUrl("redis://al%40ice:p%3Aw@cache.example:7000/3");
  ASSERT_TRUE(address.ok()) << address.error().message;
  EXPECT_EQ(address->endpoints, (std::vector<Endpoint>{{"cache.example", 7000}}));
  EXPECT_EQ(address->user, "al@ice");
  EXPECT_EQ(address->password, "p:w");
  EXPECT_EQ(address->database, 3U);
  EXPECT_FALSE(address->tls.on);
  EXPECT_FALSE(address->cluster);
}

TEST(RedisUrl, FillsInWhatIsLeftOut) {
  const auto address = ParseUrl("redis://:secret@[::1]");
  ASSERT_TRUE(address.ok()) << address.error().message;
  EXPECT_EQ(address->endpoints, (std::vector<Endpoint>{{"::1", 6379}}));
  EXPECT_EQ(address->user, "");
  EXPECT_EQ(address->password, "secret");
  EXPECT_EQ(address->database, 0U);
}

TEST(RedisUrl, ReadsTheNodesOfACluster) {
  const auto address = ParseUrl("redis+cluster://h1:1,h2,[::1]:3");
  ASSERT_TRUE(address.ok()) << address.error().message;
  EXPECT_TRUE(address->cluster);
  EXPECT_EQ(address->endpoints, (std::vector<Endpoint>{{"h1", 1}, {"h2", 6379}, {"::1", 3}}));
  EXPECT_EQ(address->tag, "");
  EXPECT_EQ(ParseUrl("redis+cluster://h1?tag=user")->tag, "user");
  EXPECT_TRUE(ParseUrl("redis+cluster://h1")->spread);
  EXPECT_FALSE(ParseUrl("redis+cluster://h1?spread=off")->spread);
}

TEST(RedisUrl, ReadsTheOptionsOfTls) {
  const auto address = ParseUrl("rediss://h?ca=/a/ca.pem&cert=/c&key=/k&verify=off");
  ASSERT_TRUE(address.ok()) << address.error().message;
  EXPECT_TRUE(address->tls.on);
  EXPECT_EQ(address->tls.ca_file, "/a/ca.pem");
  EXPECT_EQ(address->tls.certificate_file, "/c");
  EXPECT_EQ(address->tls.key_file, "/k");
  EXPECT_FALSE(address->tls.verify);
}

TEST(RedisUrl, SaysTlsAsTheOtherDriversDo) {
  const auto address = ParseUrl("rediss://h?tls_ca=/a/ca.pem&tls_cert=/c&tls_key=/k");
  ASSERT_TRUE(address.ok()) << address.error().message;
  EXPECT_EQ(address->tls.ca_file, "/a/ca.pem");
  EXPECT_EQ(address->tls.certificate_file, "/c");
  EXPECT_EQ(address->tls.key_file, "/k");
  EXPECT_TRUE(address->tls.verify);
  EXPECT_TRUE(ParseUrl("rediss://h?tls=required")->tls.verify);
  EXPECT_FALSE(ParseUrl("rediss://h?tls=insecure-no-verify")->tls.verify);
  EXPECT_FALSE(ParseUrl("rediss://h?tls=off").ok());
  EXPECT_FALSE(ParseUrl("redis://h?tls=required").ok());
  EXPECT_NE(ParseUrl("redis://h?gahter=1ms").error().message.find("unknown option 'gahter'"),
            std::string::npos);
}

TEST(RedisUrl, ReadsHowLongChecksMayWaitForOthers) {
  using namespace std::chrono_literals;
  EXPECT_EQ(ParseUrl("redis://h")->gather, 0ns);
  EXPECT_EQ(ParseUrl("redis://h?gather=0")->gather, 0ns);
  EXPECT_EQ(ParseUrl("redis://h?gather=500us")->gather, 500us);
  EXPECT_EQ(ParseUrl("redis+cluster://h1,h2?spread=off&gather=10ms")->gather, 10ms);
  for (const char* value : {"11ms", "1", "-1ms", "soon", "1s"}) {
    const auto address = ParseUrl(std::string("redis://h?gather=") + value);
    ASSERT_FALSE(address.ok()) << value;
    EXPECT_NE(address.error().message.find("at most 10ms"), std::string::npos);
    EXPECT_NE(address.error().message.find(value), std::string::npos);
  }
}

TEST(RedisUrl, RefusesWhatItCannotRead) {
  for (const char* url : {"",
                          "redis:",
                          "http://h",
                          "redis://",
                          "redis://h:0",
                          "redis://h:65536",
                          "redis://h:",
                          "redis://h:1x",
                          "redis://h/x",
                          "redis://h/-1",
                          "redis://a,b",
                          "redis://[::1",
                          "redis://[::1]x",
                          "redis://u%4@h",
                          "redis://u%zz@h",
                          "redis://h?ca=x",
                          "rediss://h?x=1",
                          "rediss://h?ca",
                          "rediss://h?verify=maybe",
                          "redis+cluster://h/1",
                          "redis://h?tag=user",
                          "redis://h?spread=off",
                          "redis+cluster://h?spread=some",
                          "redis+cluster://h,"}) {
    EXPECT_FALSE(ParseUrl(url).ok()) << url;
  }
  EXPECT_FALSE(ParseUrl("redis://" + std::string(5000, 'h')).ok());
}

TEST(RedisUrl, KeepsThePasswordToItself) {
  const auto address = ParseUrl("redis://user:hunter2@h:port");
  ASSERT_FALSE(address.ok());
  EXPECT_EQ(address.error().message.find("hunter2"), std::string::npos);
}

}  // namespace
}  // namespace weir::redis
