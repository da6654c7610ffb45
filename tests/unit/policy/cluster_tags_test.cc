#include "policy/cluster_tags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/policy_file.h"

namespace weir::policy {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Policies of domain `d`, each written as what stands beside its quota.
std::vector<std::string> Conflicts(const std::vector<std::string>& policies) {
  std::string text = "domain: d\npolicies:\n";
  for (const std::string& policy : policies) {
    text += "  - {" + policy + ", quota: {fixed_window: {limit: 1, window: 1s}}}\n";
  }
  std::vector<yaml::Problem> problems;
  std::vector<Definition> definitions = ParsePolicies(text, "p.yaml", problems);
  EXPECT_EQ(yaml::ToString(problems), "");
  PolicyIds ids;
  const auto set = PolicySet::Compile(std::move(definitions), {DefaultPolicy(), 0.1}, ids);
  EXPECT_TRUE(set.ok()) << set.error().message;
  return TagConflicts(**set, "user");
}

TEST(ClusterTags, PoliciesThatAllHaveTheEntryGoTogether) {
  EXPECT_THAT(Conflicts({"name: a, match: {user: '*'}", "name: b, match: {user: '*', route: /x}",
                         "name: c, match: {user: vip, route: /x*}"}),
              IsEmpty());
}

TEST(ClusterTags, OneWithoutTheEntryMeetsOneWithIt) {
  EXPECT_THAT(Conflicts({"name: a, match: {user: '*'}", "name: everybody, match: {}"}),
              ElementsAre(AllOf(HasSubstr("'a'"), HasSubstr("'everybody'"), HasSubstr("'d'"))));
}

TEST(ClusterTags, APrefixIsOneKeyForAllItsUsers) {
  EXPECT_THAT(Conflicts({"name: a, match: {user: bot*}", "name: b, match: {user: '*', route: /x}"}),
              ElementsAre(HasSubstr("'a' and 'b'")));
  // The prefix takes the place of the one for any: they never meet.
  EXPECT_THAT(Conflicts({"name: a, match: {user: bot*}", "name: b, match: {user: '*'}"}),
              IsEmpty());
}

TEST(ClusterTags, PoliciesThatNeverMeetMayDiffer) {
  EXPECT_THAT(Conflicts({"name: a, match: {user: '*', route: /x}", "name: b, match: {route: /y}"}),
              IsEmpty());
  EXPECT_THAT(Conflicts({"name: a, match: {user: '*'}", "name: b, match: {}, shadow: true"}),
              IsEmpty());
  EXPECT_THAT(Conflicts({"name: a, match: {user: '*'}, replaces: [b]", "name: b, match: {}"}),
              IsEmpty());
  EXPECT_THAT(Conflicts({"name: a, chain: [{user: '*'}]", "name: b, chain: [{route: '*'}]"}),
              IsEmpty());
}

TEST(ClusterTags, AChainMeetsAPolicyForItsEntriesOnly) {
  EXPECT_THAT(Conflicts({"name: a, chain: [{route: /x}]", "name: b, match: {user: '*'}"}),
              IsEmpty());
  EXPECT_THAT(
      Conflicts({"name: a, chain: [{route: /x}, {user: '*'}]", "name: b, match: {route: /x}"}),
      ElementsAre(HasSubstr("'a'")));
}

}  // namespace
}  // namespace weir::policy
