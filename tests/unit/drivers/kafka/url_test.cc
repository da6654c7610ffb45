#include "drivers/kafka/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir::kafka {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

std::string Complaint(std::string_view text) {
  const Result<Url> url = ParseUrl(text);
  return url ? "accepted" : url.error().message;
}

TEST(KafkaUrl, HostsGetTheDefaultPort) {
  const Result<Url> url = ParseUrl("kafka://one,two:9093,[::1]:9094/");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url->brokers, "one:9092,two:9093,[::1]:9094");
  EXPECT_TRUE(url->properties.empty());
}

TEST(KafkaUrl, PropertiesOfTlsAndSaslPassThroughDecoded) {
  const Result<Url> url =
      ParseUrl("kafka://b?security.protocol=SSL&ssl.ca.location=%2Fetc%2Fca%20of%20ours.pem");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_THAT(url->properties, ElementsAre(Pair("security.protocol", "SSL"),
                                           Pair("ssl.ca.location", "/etc/ca of ours.pem")));
}

TEST(KafkaUrl, UserAndPasswordMeanPlainSasl) {
  const Result<Url> url = ParseUrl("kafka://weir:p%40ss@b?security.protocol=SASL_SSL");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_THAT(url->properties,
              ElementsAre(Pair("sasl.username", "weir"), Pair("sasl.password", "p@ss"),
                          Pair("security.protocol", "SASL_SSL"), Pair("sasl.mechanism", "PLAIN")));
}

TEST(KafkaUrl, SaysWhatIsWrong) {
  EXPECT_THAT(Complaint("redis://b"), HasSubstr("kafka://"));
  EXPECT_THAT(Complaint("kafka://"), HasSubstr("missing host"));
  EXPECT_THAT(Complaint("kafka://a,,b"), HasSubstr("missing host"));
  EXPECT_THAT(Complaint("kafka://a:0"), HasSubstr("invalid port"));
  EXPECT_THAT(Complaint("kafka://a:65536"), HasSubstr("invalid port"));
  EXPECT_THAT(Complaint("kafka://a?acks=0"), HasSubstr("\"acks\""));
  EXPECT_THAT(Complaint("kafka://a?ssl.ca.location="), HasSubstr("no value"));
  EXPECT_THAT(Complaint("kafka://a?ssl.ca.location=%zz"), HasSubstr("percent-encoding"));
  EXPECT_THAT(Complaint("kafka://u:p@a"), HasSubstr("security.protocol"));
  EXPECT_THAT(Complaint(std::string("kafka://a\n", 10)), HasSubstr("control character"));
  EXPECT_THAT(Complaint("kafka://" + std::string(8192, 'a')), HasSubstr("8192"));
}

TEST(KafkaUrl, NoPropertyRunsCode) {
  EXPECT_THAT(Complaint("kafka://a?plugin.library.paths=x"), HasSubstr("unknown"));
  EXPECT_THAT(Complaint("kafka://a?sasl.kerberos.kinit.cmd=x"), HasSubstr("unknown"));
  EXPECT_THAT(Complaint("kafka://a?ssl.engine.location=x"), HasSubstr("unknown"));
}

TEST(KafkaUrl, NeverShowsAPassword) {
  EXPECT_THAT(Complaint("kafka://weir:hunter2@not a host"), Not(HasSubstr("hunter2")));
  EXPECT_THAT(Complaint("kafka://weir:hunter2@b?x=1"), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace weir::kafka
