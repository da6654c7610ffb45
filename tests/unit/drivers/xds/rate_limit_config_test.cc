#include "drivers/xds/rate_limit_config.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include <limits>

#include "policy/envoy_config.h"
#include "xds.pb.h"

namespace weir::xds {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

wire::RateLimitConfig OneLimit(int unit, std::uint32_t requests) {
  wire::RateLimitConfig config;
  config.set_name("edge");
  config.set_domain("d");
  wire::Descriptor& descriptor = *config.add_descriptors();
  descriptor.set_key("user");
  descriptor.mutable_rate_limit()->set_unit(unit);
  descriptor.mutable_rate_limit()->set_requests_per_unit(requests);
  return config;
}

std::vector<policy::Definition> Read(const wire::RateLimitConfig& config,
                                     std::vector<policy::yaml::Problem>& problems) {
  const auto read = ReadRateLimitConfig(config.SerializeAsString(), false);
  EXPECT_TRUE(read.ok());
  return policy::ParseEnvoyConfig(read->yaml, "xds:" + read->name, problems);
}

TEST(RateLimitConfig, QuotaMode) {
  wire::RateLimitConfig config = OneLimit(4, 3);
  config.mutable_descriptors(0)->set_quota_mode(true);
  std::vector<policy::yaml::Problem> problems;
  const auto definitions = Read(config, problems);
  EXPECT_THAT(problems, IsEmpty()) << policy::yaml::ToString(problems);
  ASSERT_EQ(definitions.size(), 1U);
  EXPECT_TRUE(definitions[0].quota_mode);
}

// Encoded by hand, with the field's number and type from the protocol.
std::string WithMetadata(const google::protobuf::Struct& metadata) {
  wire::RateLimitConfig config = OneLimit(4, 3);
  wire::Descriptor& descriptor = *config.mutable_descriptors(0);
  *descriptor.GetReflection()->MutableUnknownFields(&descriptor)->AddLengthDelimited(8) =
      metadata.SerializeAsString();
  return config.SerializeAsString();
}

TEST(RateLimitConfig, MetadataIsThatOfAFile) {
  const std::string json =
      R"({"a":{"list":[1,-2.5,1e+30,"x",null,[],{}],"no":false},"b":"true","c":true,)"
      R"("d \"}: #":"\"]}, { # : *\n\u2028\u00fc"})";
  google::protobuf::Struct metadata;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &metadata).ok());
  const auto read = ReadRateLimitConfig(WithMetadata(metadata), false);
  ASSERT_TRUE(read.ok()) << read.error().message;
  std::vector<policy::yaml::Problem> problems;
  const auto definitions = policy::ParseEnvoyConfig(read->yaml, "xds:edge", problems);
  ASSERT_THAT(problems, IsEmpty()) << policy::yaml::ToString(problems);
  google::protobuf::Struct again;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(definitions.at(0).metadata, &again).ok());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(metadata, again))
      << definitions[0].metadata;
}

// Otherwise a state that is sent again would look like a change.
TEST(RateLimitConfig, TheSameMetadataIsTheSameText) {
  google::protobuf::Struct forth;
  google::protobuf::Struct back;
  for (int i = 0; i < 50; ++i) {
    (*forth.mutable_fields())[std::to_string(i)].set_number_value(i);
    (*back.mutable_fields())[std::to_string(49 - i)].set_number_value(49 - i);
  }
  EXPECT_EQ(ReadRateLimitConfig(WithMetadata(forth), false)->yaml,
            ReadRateLimitConfig(WithMetadata(back), false)->yaml);
}

TEST(RateLimitConfig, MetadataThatNoFileCanSayIsRefused) {
  google::protobuf::Struct metadata;
  (*metadata.mutable_fields())["a"].set_number_value(std::numeric_limits<double>::infinity());
  const auto refused = ReadRateLimitConfig(WithMetadata(metadata), false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "edge: metadata: a number is not finite");
}

TEST(RateLimitConfig, EveryUnitHasItsNumber) {
  using std::chrono::hours;
  using std::chrono::seconds;
  const std::pair<int, seconds> units[] = {
      {1, seconds(1)},    {2, seconds(60)},    {3, hours(1)},       {4, hours(24)},
      {7, hours(24 * 7)}, {5, hours(24 * 30)}, {6, hours(24 * 365)}};
  for (const auto& [number, length] : units) {
    std::vector<policy::yaml::Problem> problems;
    const auto policies = Read(OneLimit(number, 3), problems);
    ASSERT_THAT(problems, IsEmpty()) << number;
    EXPECT_EQ(policies.at(0).quota, *Quota::FixedWindow(3, length)) << number;
  }
}

TEST(RateLimitConfig, AUnitThatIsNotKnownIsReported) {
  for (const int number : {0, 8, -1}) {
    std::vector<policy::yaml::Problem> problems;
    Read(OneLimit(number, 3), problems);
    ASSERT_EQ(problems.size(), 1U) << number;
    EXPECT_THAT(problems[0].ToString(), HasSubstr("xds:edge:3:"));
  }
}

TEST(RateLimitConfig, TextsMeanThemselvesWhateverTheyHold) {
  wire::RateLimitConfig config = OneLimit(1, 1);
  config.mutable_descriptors(0)->set_value("\"]}, { # : *\n\t\\x");
  std::vector<policy::yaml::Problem> problems;
  const auto policies = Read(config, problems);
  ASSERT_THAT(problems, IsEmpty());
  EXPECT_EQ(policies.at(0).match.at(0).text, "\"]}, { # : *\n\t\\x");
}

// An unknown field may exempt something from limits.
TEST(RateLimitConfig, AFieldThatIsNotKnownIsRefusedUnlessLenient) {
  wire::RateLimitConfig config = OneLimit(1, 1);
  wire::Descriptor& descriptor = *config.mutable_descriptors(0);
  descriptor.GetReflection()->MutableUnknownFields(&descriptor)->AddVarint(300, 1);
  const std::string bytes = config.SerializeAsString();
  const auto refused = ReadRateLimitConfig(bytes, false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "edge: descriptor 'user': unknown field number 300");
  EXPECT_TRUE(ReadRateLimitConfig(bytes, true).ok());
}

TEST(RateLimitConfig, WhatIsNotAMessageIsRefused) {
  EXPECT_FALSE(ReadRateLimitConfig("\xff\xff", false).ok());
}

}  // namespace
}  // namespace weir::xds
