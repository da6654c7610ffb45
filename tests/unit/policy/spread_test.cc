#include "policy/spread.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/policy_file.h"

namespace weir::policy {
namespace {

/// Where the keys of policies of domain `d` live, each written as what stands beside its quota.
KeyPlaces Places(const std::vector<std::string>& policies, const std::string& head = "") {
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
  return SpreadOf(**set);
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
  // a and c never meet, but b meets both and has an entry in common with each.
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

}  // namespace
}  // namespace weir::policy
