#include "drivers/xds/rate_limit_config.h"

#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>

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

// A field that we do not know may say that something is not to be limited.
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
