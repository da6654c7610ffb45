#include "policy/spread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "policy/policy_file.h"

namespace weir::policy {
namespace {

/// Policies of domain `d`, each given without its quota.
std::shared_ptr<const PolicySet> SetOf(const std::vector<std::string>& policies,
                                       const std::string& head = "") {
  std::string text = "domain: d\n" + head + "policies:\n";
  for (const std::string& policy : policies) {
    text += "  - {" + policy + ", quota: {fixed_window: {limit: 1, window: 1s}}}\n";
  }
  std::vector<yaml::Problem> problems;
  std::vector<Definition> definitions = ParsePolicies(text, "p.yaml", problems);
  EXPECT_EQ(yaml::ToString(problems), "");
  PolicyIds ids;
  const auto set = PolicySet::Compile(std::move(definitions), {DefaultPolicy(), 0.1}, ids);
  EXPECT_TRUE(set.ok()) << set.error().message;
  return *set;
}

/// The places of their keys.
KeyPlaces Places(const std::vector<std::string>& policies, const std::string& head = "") {
  return SpreadOf(*SetOf(policies, head));
}

using Entries = std::vector<std::string>;

Entries EntriesOf(const KeyPlaces& places, const std::string& head) {
  const auto found = places.find(head);
  return found == places.end() ? Entries{} : found->second.entries;
}

TEST(Spread, APolicyAloneSpreadsByItsValues) {
  EXPECT_EQ(EntriesOf(Places({"name: a, match: {user: '*'}"}), "d/a"), Entries{"user"});
  EXPECT_EQ(EntriesOf(Places({"name: a, match: {user: '*', route: /x}"}), "d/a"),
            (Entries{"route", "user"}));
}

TEST(Spread, PoliciesThatMeetShareTheEntriesThatBothHave) {
  const KeyPlaces places =
      Places({"name: a, match: {user: '*'}", "name: b, match: {user: '*', route: '*'}"});
  EXPECT_EQ(EntriesOf(places, "d/a"), Entries{"user"});
  EXPECT_EQ(EntriesOf(places, "d/b"), Entries{"user"});
}

TEST(Spread, PoliciesThatMeetAndShareNothingLiveByTheirDomain) {
  const KeyPlaces places = Places({"name: a, match: {user: '*'}", "name: everybody, match: {}"});
  EXPECT_EQ(EntriesOf(places, "d/a"), Entries{});
  EXPECT_EQ(
      EntriesOf(Places({"name: a, match: {user: '*'}", "name: b, match: {route: '*'}"}), "d/a"),
      Entries{});
}

TEST(Spread, MeetingGoesOnByWayOfOthers) {
  // a and c never apply together, but b can apply with each and shares an entry with each.
  const KeyPlaces places =
      Places({"name: a, match: {user: '*', plan: free}", "name: b, match: {user: '*', route: '*'}",
              "name: c, match: {route: '*', plan: paid}"});
  EXPECT_EQ(EntriesOf(places, "d/a"), Entries{});
  EXPECT_EQ(EntriesOf(places, "d/c"), Entries{});
}

TEST(Spread, PoliciesThatNeverMeetSpreadApart) {
  const KeyPlaces places =
      Places({"name: a, match: {user: '*', route: /x}", "name: b, match: {ip: '*', route: /y}"});
  EXPECT_EQ(EntriesOf(places, "d/a"), (Entries{"route", "user"}));
  EXPECT_EQ(EntriesOf(places, "d/b"), (Entries{"ip", "route"}));
}

TEST(Spread, OneKeyForManyValuesDoesNotSpreadByThem) {
  EXPECT_EQ(EntriesOf(Places({"name: a, match: {user: '*', route: /v1/*}"}), "d/a"),
            Entries{"user"});
  EXPECT_EQ(EntriesOf(Places({"name: a, match: {user: bot*}"}), "d/a"), Entries{});
}

TEST(Spread, APolicyOnTrialCountsAsIfItWereEnforced) {
  EXPECT_EQ(
      EntriesOf(Places({"name: a, match: {user: '*'}", "name: b, match: {}, shadow: true"}), "d/a"),
      Entries{});
}

TEST(Spread, OfChainsOnlyOneApplies) {
  const KeyPlaces places = Places({"name: a, chain: [{user: '*'}]", "name: b, chain: [{ip: '*'}]"});
  EXPECT_EQ(EntriesOf(places, "d/a"), Entries{"user"});
  EXPECT_EQ(EntriesOf(places, "d/b"), Entries{"ip"});
}

TEST(Spread, WhatIsChargedForItselfSpreadsByItsKey) {
  const KeyPlaces places =
      Places({"name: a, match: {user: '*'}", "name: b, match: {route: '*'}"}, "charge: each\n");
  EXPECT_TRUE(places.at("d/a").whole);
  EXPECT_TRUE(places.at("d/b").whole);
}

TEST(Spread, WithReportsTheRestIsStillAllOrNone) {
  const std::vector<std::string> policies = {"name: a, match: {user: '*'}",
                                             "name: b, match: {user: '*', route: '*'}"};
  const KeyPlaces places = Places(policies, "charge: reports\n");
  EXPECT_EQ(EntriesOf(places, "d/a"), Entries{"user"});
  EXPECT_EQ(EntriesOf(places, "d/b"), Entries{"user"});
}

TEST(Spread, ManyPoliciesOfAShapeAreTakenForOne) {
  std::vector<std::string> policies = {"name: all, match: {user: '*', route: '*'}"};
  for (int i = 0; i < 2000; ++i) {
    const std::string number = std::to_string(i);
    policies.push_back("name: p" + number + ", match: {user: u" + number + "}");
  }
  const KeyPlaces places = Places(policies);
  EXPECT_EQ(EntriesOf(places, "d/all"), Entries{"user"});
  EXPECT_EQ(EntriesOf(places, "d/p7"), Entries{"user"});
}

/// Adds enough policies that they are compared by their shapes.
std::vector<std::string> Crowd(std::vector<std::string> policies) {
  for (int i = 0; i < 600; ++i) {
    const std::string number = std::to_string(i);
    policies.push_back("name: p" + number + ", match: {user: u" + number + "}");
  }
  return policies;
}

TEST(Spread, InACrowdAPrefixIsStillOneKey) {
  const KeyPlaces places = Places(Crowd({"name: bots, match: {user: bot*}"}));
  EXPECT_EQ(EntriesOf(places, "d/bots"), Entries{});
  EXPECT_EQ(EntriesOf(places, "d/p7"), Entries{})
      << "bot-1 may be p7 as well, for all a shape says";
}

TEST(Spread, InACrowdAChainMeetsOnlyPoliciesForItsEntries) {
  KeyPlaces places =
      Places(Crowd({"name: a, chain: [{ip: '*'}]", "name: b, chain: [{ip: '*'}, {zone: '*'}]"}));
  EXPECT_EQ(EntriesOf(places, "d/a"), Entries{"ip"});
  EXPECT_EQ(EntriesOf(places, "d/b"), (Entries{"ip", "zone"}));
  EXPECT_EQ(EntriesOf(places, "d/p7"), Entries{"user"});
  places = Places(Crowd({"name: a, chain: [{ip: '*'}, {user: '*'}]"}));
  EXPECT_EQ(EntriesOf(places, "d/a"), Entries{"user"});
  std::vector<std::string> last = Crowd({});
  last.push_back("name: a, chain: [{ip: '*'}]");
  last.push_back("name: b, chain: [{zone: '*'}, {user: '*'}]");
  places = Places(last);
  EXPECT_EQ(EntriesOf(places, "d/a"), Entries{"ip"});
  EXPECT_EQ(EntriesOf(places, "d/b"), Entries{"user"});
}

TEST(Spread, InACrowdTheOrderOfAChainIsPartOfItsShape) {
  std::vector<std::string> policies;
  for (int i = 0; i < 600; ++i) {
    const std::string number = std::to_string(i);
    policies.push_back("name: p" + number + ", chain: [{user: u" + number + "}, {ip: '*'}]");
  }
  policies.push_back("name: all, match: {ip: '*'}");
  const KeyPlaces places = Places(policies);
  EXPECT_EQ(EntriesOf(places, "d/p7"), Entries{"ip"});
  EXPECT_EQ(EntriesOf(places, "d/all"), Entries{"ip"});
}

TEST(Spread, TooManyShapesLiveByTheirDomain) {
  std::vector<std::string> policies;
  for (int i = 0; i < 1001; ++i) {
    const std::string number = std::to_string(i);
    policies.push_back("name: p" + number + ", match: {e" + number + ": '*'}");
  }
  EXPECT_TRUE(Places(policies).empty());
}

TEST(Spread, AnEntryThatAChainHasTwiceIsNotSpreadBy) {
  EXPECT_EQ(EntriesOf(Places({"name: a, chain: [{k: x}, {k: y}, {user: '*'}]"}), "d/a"),
            Entries{"user"});
}

TEST(Spread, ThreeThatMeetShareWhatAllHave) {
  const KeyPlaces places =
      Places({"name: a, match: {user: '*'}", "name: b, match: {user: '*', route: '*'}",
              "name: c, match: {user: '*', ip: '*'}"});
  for (const char* head : {"d/a", "d/b", "d/c"})
    EXPECT_EQ(EntriesOf(places, head), Entries{"user"});
}

TEST(Spread, WhatHasNoQuotaOrNoMatchHasNoPlace) {
  PolicyIds ids;
  std::vector<yaml::Problem> problems;
  auto definitions = ParsePolicies(
      "policies: [{name: a, match: {user: '*'}, unlimited: true}, {name: b, key: k, "
      "quota: {fixed_window: {limit: 1, window: 1s}}}]",
      "p.yaml", problems);
  const auto set = PolicySet::Compile(std::move(definitions), {DefaultPolicy(), 0.1}, ids);
  ASSERT_TRUE(set.ok());
  EXPECT_TRUE(SpreadOf(**set).empty());
}

/// The warnings about policies that charge a request with several descriptors one by one.
std::vector<std::string> Crossings(const std::vector<std::string>& policies,
                                   const std::string& head = "") {
  return CrossingPolicies(*SetOf(policies, head));
}

TEST(Spread, ChainsOfDifferentEntriesAreCrossedByDescriptorsOfOneRequest) {
  EXPECT_THAT(Crossings({"name: a, chain: [{user: '*'}]", "name: b, chain: [{ip: '*'}]"}),
              testing::ElementsAre(testing::HasSubstr("'a' and 'b' of domain 'd'")));
  EXPECT_EQ(
      Crossings({"name: a, chain: [{user: '*'}]", "name: b, chain: [{user: '*'}, {route: '*'}]"})
          .size(),
      1U);
  EXPECT_EQ(Crossings({"name: a, chain: [{user: '*'}]", "name: b, match: {ip: '*'}"}).size(), 1U);
}

TEST(Spread, PoliciesInOneSlotAreNotCrossed) {
  EXPECT_TRUE(Crossings({"name: a, match: {user: '*'}", "name: b, match: {ip: '*'}"}).empty());
  EXPECT_TRUE(Crossings({"name: a, chain: [{route: '*'}, {user: '*'}]",
                         "name: b, chain: [{user: '*'}]", "name: c, match: {user: '*'}"})
                  .empty())
      << "all live by the user";
  EXPECT_TRUE(
      Crossings({"name: a, chain: [{user: '*'}]", "name: b, chain: [{ip: '*'}]"}, "charge: each\n")
          .empty())
      << "charged one by one in any case";
}

TEST(Spread, DescriptorsOfOneRequestHaveOneValueOfAnEntry) {
  EXPECT_TRUE(
      Crossings({"name: a, match: {user: '*', route: /a}", "name: b, match: {ip: '*', route: /b}"})
          .empty());
  EXPECT_TRUE(
      Crossings({"name: a, chain: [{user: '*'}]", "name: b, chain: [{user: bot}]"}).empty());
}

}  // namespace
}  // namespace weir::policy
