#include "admin/explain_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "policy/envoy_config.h"
#include "policy/policy_file.h"

namespace weir::admin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::shared_ptr<const policy::PolicySet> Compiled(std::vector<policy::Definition> definitions) {
  policy::PolicyIds ids;
  auto set =
      policy::PolicySet::Compile(std::move(definitions), {policy::DefaultPolicy(), 0.1}, ids);
  EXPECT_TRUE(set.ok()) << set.error().message;
  return *set;
}

/// Policies of domain api, each "name: a, match: {…}".
std::shared_ptr<const policy::PolicySet> Policies(const std::vector<std::string>& policies,
                                                  const std::string& domain = "api") {
  std::string text = "domain: " + domain + "\npolicies:\n";
  for (const std::string& policy : policies) {
    text += "  - {" + policy + ", quota: {fixed_window: {limit: 5, window: 1s}}}\n";
  }
  std::vector<policy::yaml::Problem> problems;
  auto definitions = policy::ParsePolicies(text, "p.yaml", problems);
  EXPECT_EQ(policy::yaml::ToString(problems), "");
  return Compiled(std::move(definitions));
}

using Entries = std::vector<policy::Entry>;

ExplainNotes Notes(const policy::PolicySet& set, const Entries& entries) {
  return NotesOn(set, "api", entries, /*misspelt=*/true);
}

TEST(ExplainNotes, APolicyThatAlsoLooksAtAMissingEntryIsNamedWithTheTextToSearchFor) {
  const auto set =
      Policies({"name: base, match: {user: '*'}", "name: daily, match: {user: '*', plan: '*'}",
                "name: vip, match: {user: c-1, plan: '*'}"});
  const ExplainNotes user = Notes(*set, {{"user", "c-77"}});
  EXPECT_THAT(user.sentences, ElementsAre("policy 'daily' also looks at plan: give it, too"));
  EXPECT_EQ(user.search, "c-77");
  EXPECT_THAT(Notes(*set, {{"user", "c-1"}}).sentences,
              ElementsAre("policies 'daily' and 'vip' also look at plan: give it, too"));
  const ExplainNotes both = Notes(*set, {{"user", "c-77"}, {"plan", "free"}});
  EXPECT_THAT(both.sentences, IsEmpty());
  EXPECT_EQ(both.search, "");
}

TEST(ExplainNotes, AMisspeltEntryIsNotTakenForTheMissingOne) {
  const auto set =
      Policies({"name: base, match: {user: '*'}", "name: daily, match: {user: '*', plan: '*'}"});
  EXPECT_THAT(Notes(*set, {{"user", "c-77"}, {"pln", "basic"}}).sentences,
              ElementsAre("policy 'daily' also looks at plan: give it, too",
                          "no policy looks at 'pln'; did you mean 'plan'?"));
  // GET /v1/auth sends more than the policies use.
  EXPECT_THAT(Notes(*set, {{"ip", "192.0.2.1"}, {"route", "/"}, {"zone", "a"}}).sentences,
              ElementsAre("no policy looks at 'zone'"));
}

TEST(ExplainNotes, PoliciesThatRefuseNobodyOrOnlyOthersAreLeftOut) {
  const auto set = Policies({"name: trial, shadow: true, match: {user: '*', plan: '*'}",
                             "name: other, match: {user: c-1, plan: '*'}",
                             "name: paths, match: {route: /v1/*, plan: '*'}"});
  EXPECT_THAT(Notes(*set, {{"user", "c-77"}, {"route", "/v2/a"}}).sentences, IsEmpty());
  const ExplainNotes path = Notes(*set, {{"route", "/v1/a"}});
  EXPECT_THAT(path.sentences, ElementsAre("policy 'paths' also looks at plan: give it, too"));
  EXPECT_EQ(path.search, "");  // its buckets do not have this value in their names
}

TEST(ExplainNotes, WithoutADomainAllAreSearched) {
  const auto set = Policies({"name: daily, match: {user: '*', plan: '*', region: '*'}"}, "shop");
  const ExplainNotes notes = NotesOnAnyDomain(*set, Entries{{"user", "c-77"}});
  EXPECT_THAT(notes.sentences, ElementsAre("policy 'daily' of domain 'shop' also looks at plan and "
                                           "region: give them, too"));
}

TEST(ExplainNotes, ABareKeyMayBeTheValueOfAnEntry) {
  const auto keyed = Policies({"name: one, key: c-77", "name: all, match: {}"});
  EXPECT_EQ(NotesOnKey(*keyed, "c-77").search, "");
  const auto set = Policies({"name: base, match: {tenant: '*', user: '*'}"});
  const ExplainNotes notes = NotesOnKey(*set, "c-77");
  EXPECT_EQ(notes.search, "c-77");
  EXPECT_THAT(notes.sentences,
              ElementsAre("policies may also count this under an entry, such as user=…"));
}

TEST(ExplainNotes, AChainInAnotherOrderIsNamed) {
  std::vector<policy::yaml::Problem> problems;
  auto definitions = policy::ParsePolicies(R"(
domain: api
descriptors:
  - key: remote_address
    descriptors:
      - {key: path, value: /login, rate_limit: {name: login, unit: minute, requests_per_unit: 5}}
)",
                                           "e.yaml", problems);
  ASSERT_EQ(policy::yaml::ToString(problems), "");
  ASSERT_THAT(definitions, SizeIs(1));
  const std::string name = definitions.front().name;
  const auto set = Compiled(std::move(definitions));
  const policy::Entry path{"path", "/login"};
  const policy::Entry address{"remote_address", "10.0.0.1"};
  EXPECT_THAT(Notes(*set, {path, address}).sentences,
              ElementsAre("the same entries in the order remote_address, path match policy '" +
                          name + "'"));
  EXPECT_THAT(Notes(*set, {address, path}).sentences, IsEmpty());
  EXPECT_THAT(Notes(*set, {{"path", "/x"}, address}).sentences, IsEmpty());
  EXPECT_THAT(Notes(*set, {address}).sentences,
              ElementsAre("policy '" + name + "' looks at remote_address, path, in this order"));
}

// This runs on a reactor: what it looks at is bounded.
TEST(ExplainNotes, NamesAFewOfManyPolicies) {
  std::vector<std::string> many;
  for (int i = 0; i < 6'000; ++i) {
    many.push_back("name: p" + std::to_string(i) + ", match: {user: c-77, plan: 'v" +
                   std::to_string(i) + "'}");
  }
  const auto set = Policies(many);
  EXPECT_THAT(Notes(*set, {{"user", "c-77"}}).sentences,
              ElementsAre("policies 'p0', 'p1', 'p2' and more also look at plan: give it, too"));
}

}  // namespace
}  // namespace weir::admin
