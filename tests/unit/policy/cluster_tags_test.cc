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

/// Policies of domain `d`, each given without its quota; returns the conflicts.
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

/// Whether two policies can apply to one request, each given by its match.
bool Meet(const std::string& one, const std::string& other) {
  const auto read = [](const std::string& fields) {
    std::vector<yaml::Problem> problems;
    auto definitions =
        ParsePolicies("policies: [{name: a, " + fields + ", unlimited: true}]", "p.yaml", problems);
    EXPECT_EQ(yaml::ToString(problems), "");
    return definitions.at(0);
  };
  const bool meet = CanMeet(read(one), read(other));
  EXPECT_EQ(CanMeet(read(other), read(one)), meet) << "whichever is asked about first";
  return meet;
}

// The second entry makes neither policy more specific than the other, so only values decide.
TEST(ClusterTags, ValuesMeetIfOneRequestCanHaveBoth) {
  const auto values = [](const std::string& a, const std::string& b) {
    return Meet("match: {user: " + a + ", route: /x}", "match: {user: " + b + ", ip: '*'}");
  };
  EXPECT_TRUE(values("'*'", "bot"));
  EXPECT_TRUE(values("bot", "bot"));
  EXPECT_FALSE(values("bot", "alice"));
  EXPECT_TRUE(values("bot-1", "bot*"));
  EXPECT_FALSE(values("alice", "bot*"));
  EXPECT_TRUE(values("b*", "bot*"));
  EXPECT_FALSE(values("a*", "b*"));
}

TEST(ClusterTags, TheMoreSpecificOfTwoForTheSameEntriesAppliesAlone) {
  EXPECT_FALSE(Meet("match: {user: '*'}", "match: {user: bot*}"));
  EXPECT_FALSE(Meet("match: {user: b*}", "match: {user: bot*}"));
  EXPECT_FALSE(Meet("match: {user: bot*}", "match: {user: bot-1}"));
  EXPECT_FALSE(Meet("match: {user: vip, route: /x}", "match: {user: '*', route: '*'}"));
  // Neither is more specific as a whole: each is more specific in one entry.
  EXPECT_TRUE(Meet("match: {user: bot*, route: '*'}", "match: {user: '*', route: /x}"));
  EXPECT_TRUE(Meet("match: {user: b*, route: /x*}", "match: {user: bot*, route: /*}"));
  // Two identical ones both apply.
  EXPECT_TRUE(Meet("match: {user: b*}", "match: {user: b*}"));
}

TEST(ClusterTags, AChainIsTheWholeDescriptor) {
  EXPECT_FALSE(Meet("chain: [{user: '*'}]", "match: {route: /x}"));
  EXPECT_TRUE(Meet("chain: [{user: '*'}, {route: /x}]", "match: {route: /x}"));
}

TEST(ClusterTags, WhatIsChargedByItselfHasNoConflict) {
  PolicyIds ids;
  std::vector<yaml::Problem> problems;
  auto definitions = ParsePolicies(R"(
policies:
  - {name: a, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 1s}}}
  - {name: free, match: {}, unlimited: true}
  - {name: key, key: k, quota: {fixed_window: {limit: 1, window: 1s}}}
)",
                                   "p.yaml", problems);
  const auto set = PolicySet::Compile(std::move(definitions), {DefaultPolicy(), 0.1}, ids);
  ASSERT_TRUE(set.ok());
  EXPECT_THAT(TagConflicts(**set, "user"), IsEmpty());
}

TEST(ClusterTags, InAChainEveryValueUnderAPrefixHasItsKeyUnlessTheyShareOne) {
  EXPECT_THAT(
      Conflicts({"name: a, chain: [{user: bot*}, {route: /x}]", "name: b, match: {user: '*'}"}),
      IsEmpty());
  EXPECT_THAT(Conflicts({"name: a, chain: [{user: bot*}, {route: /x}], share: [user]",
                         "name: b, match: {user: '*'}"}),
              ElementsAre(HasSubstr("'a'")));
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
  // The prefix replaces the wildcard: they never apply together.
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
