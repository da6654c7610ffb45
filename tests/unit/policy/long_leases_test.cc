#include "policy/long_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/policy_file.h"

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Warnings(const std::string& policy) {
  std::vector<yaml::Problem> problems;
  std::vector<Definition> definitions = ParsePolicies(
      "policies: [{name: a, match: {user: '*'}, " + policy + "}]", "p.yaml", problems);
  EXPECT_EQ(yaml::ToString(problems), "");
  PolicyIds ids;
  const auto set = PolicySet::Compile(std::move(definitions), {DefaultPolicy(), 0.1}, ids);
  EXPECT_TRUE(set.ok()) << set.error().message;
  return LongLeases(**set);
}

TEST(LongLeases, LongWindowsThatAreLeasedAreWarnedOf) {
  const std::string warning =
      "p.yaml:1:12: policy 'a': mode: leased: permits lost by leases come back only when the "
      "window "
      "ends";
  EXPECT_THAT(Warnings("mode: leased, quota: {fixed_window: {limit: 4000, window: 1h}}"),
              ElementsAre(warning));
  EXPECT_THAT(
      Warnings("mode: leased, quota: {sliding_counter: {limit: 4000, window: 1h, buckets: 6}}"),
      ElementsAre(warning));
}

TEST(LongLeases, OthersAreNot) {
  EXPECT_THAT(Warnings("mode: leased, quota: {fixed_window: {limit: 4000, window: 10m}}"),
              IsEmpty());
  EXPECT_THAT(Warnings("quota: {fixed_window: {limit: 4000, window: 1d}}"), IsEmpty());
  EXPECT_THAT(
      Warnings("mode: leased, quota: {token_bucket: {capacity: 4000, refill_per_second: 1}}"),
      IsEmpty());
}

}  // namespace
}  // namespace weir::policy
