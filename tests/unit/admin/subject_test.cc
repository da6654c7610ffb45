#include "admin/subject.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace weir::admin {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

/// `count` policies in two domains, each for one user.
std::shared_ptr<const policy::PolicySet> Policies(int count) {
  std::vector<policy::Definition> definitions;
  for (int i = 0; i < count; ++i) {
    policy::Definition definition = policy::DefaultPolicy();
    definition.domain = i % 2 == 0 ? "even" : "odd";
    definition.name = "p" + std::to_string(i);
    definition.has_match = true;
    definition.match.push_back(policy::MakeEntryMatch("user", std::to_string(i)));
    definitions.push_back(std::move(definition));
  }
  policy::PolicyIds ids;
  auto set =
      policy::PolicySet::Compile(std::move(definitions), {policy::DefaultPolicy(), 0.1}, ids);
  EXPECT_TRUE(set.ok());
  return *set;
}

Subject Entries(const std::string& name, const std::string& value) {
  Subject subject;
  subject.entries.emplace_back(name, value);
  return subject;
}

/// The CPU time of `times` lookups that no policy applies to, in milliseconds.
double TimeOfAsking(const policy::PolicySet& set, int times) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  };
  const Subject nobody = Entries("host", "a");
  const double before = now();
  for (int i = 0; i < times; ++i) {
    EXPECT_EQ(DomainsOf(set, nobody).size(), 1U);
    EXPECT_NE(UnusedIn(set, "even", nobody.Descriptor()), "");
  }
  return now() - before;
}

TEST(Subject, IsMeantForTheDomainsThatHaveAPolicyForIt) {
  const auto set = Policies(4);
  EXPECT_THAT(DomainsOf(*set, Entries("user", "2")), ElementsAre("even"));
  EXPECT_THAT(DomainsOf(*set, Entries("user", "3")), ElementsAre("odd"));
}

TEST(Subject, IsToldWhatNoPolicyUses) {
  const auto set = Policies(4);
  const Subject misspelt = Entries("usr", "2");
  EXPECT_EQ(UnusedIn(*set, "even", misspelt.Descriptor()),
            "no policy of domain 'even' uses the entry 'usr'; did you mean 'user'?");
  EXPECT_EQ(UnusedIn(*set, "evn", misspelt.Descriptor()),
            "no policy uses domain 'evn'; did you mean 'even'?");
  EXPECT_EQ(UnusedIn(*set, "odd", Entries("user", "9").Descriptor()), "");
}

// This runs on a reactor: its time must not grow with the number of policies.
TEST(Subject, TakesNoLongerToFindAmongThousandsOfPolicies) {
  const auto few = Policies(100);
  const auto many = Policies(20'000);
  EXPECT_LT(TimeOfAsking(*many, 50), 10 * TimeOfAsking(*few, 50) + 20);
}

TEST(PolicyOfBucket, IsFoundByHowItsNameBegins) {
  const auto set = Policies(4);
  ASSERT_NE(PolicyOfBucket(*set, "odd/p3|user:3"), nullptr);
  EXPECT_EQ(PolicyOfBucket(*set, "odd/p3|user:3")->definition.name, "p3");
  EXPECT_EQ(PolicyOfBucket(*set, "odd/p2|user:2"), nullptr);
  EXPECT_EQ(PolicyOfBucket(*set, "key|somebody"), &set->default_policy());
}

TEST(SubjectOfBucket, IsReadFromItsName) {
  const auto set = Policies(4);
  const policy::Policy& policy = set->policies().at(3);
  const auto subject = SubjectOfBucket(policy, "odd/p3|a%3Ab:1:2|user:a%7Cb");
  ASSERT_TRUE(subject);
  EXPECT_EQ(subject->domain, "odd");
  EXPECT_THAT(subject->entries, ElementsAre(Pair("a:b", "1:2"), Pair("user", "a|b")));
  // A long name is cut, so its end is unknown.
  EXPECT_FALSE(SubjectOfBucket(policy, "odd/p3|user:a|%long:0123456789abcdef0123456789abcdef"));
  EXPECT_FALSE(SubjectOfBucket(set->default_policy(), "key|somebody"));
}

TEST(OthersLimiting, NamesEnforcedPoliciesOfTheSameRequests) {
  std::vector<policy::Definition> definitions;
  for (const char* name : {"a", "b", "c", "on-trial", "elsewhere"}) {
    policy::Definition definition = policy::DefaultPolicy();
    definition.name = name;
    definition.has_match = true;
    definition.shadow = definition.name == "on-trial";
    definition.match.push_back(
        policy::MakeEntryMatch(definition.name == "elsewhere" ? "address" : "user", "*"));
    definitions.push_back(std::move(definition));
  }
  policy::PolicyIds ids;
  const auto set =
      policy::PolicySet::Compile(std::move(definitions), {policy::DefaultPolicy(), 0.1}, ids);
  ASSERT_TRUE(set.ok());
  Subject subject = Entries("user", "7");
  subject.domain = "default";
  const auto& policies = (*set)->policies();
  EXPECT_EQ(OthersLimiting(**set, policies.at(0), subject), "'b' and 'c'");
  EXPECT_EQ(OthersLimiting(**set, policies.at(3), subject), "'a', 'b' and 'c'");
  Subject address = Entries("address", "::1");
  address.domain = "default";
  EXPECT_EQ(OthersLimiting(**set, policies.at(4), address), "");
}

}  // namespace
}  // namespace weir::admin
