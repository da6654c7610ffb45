// The policies that apply to a request without a domain, such as GET /v1/auth or curl.

#include "policy/domains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/policy_file.h"
#include "policy/policy_set.h"

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// The domains of the policies that apply to user=42 if the policies are of these domains, and
/// those of files only of `of_files`.
std::vector<std::string> Met(const std::vector<std::string>& domains, std::string_view named,
                             const std::string& of_files = "") {
  std::vector<Definition> definitions;
  for (const std::string& domain : domains) {
    std::vector<yaml::Problem> problems;
    auto made = ParsePolicies("domain: " + domain +
                                  "\npolicies: [{name: p, match: {user: \"*\"}, quota: "
                                  "{fixed_window: {limit: 1, window: 1s}}}]",
                              domain + ".yaml", problems);
    EXPECT_THAT(problems, IsEmpty());
    definitions.push_back(std::move(made.front()));
  }
  PolicyIds ids;
  CompileOptions options{DefaultPolicy(), 0.1};
  options.file_domain = of_files;
  const auto set = PolicySet::Compile(std::move(definitions), options, ids);
  EXPECT_TRUE(set.ok());
  MatchBuffer buffer;
  const std::vector<Entry> user = {{"user", "42"}};
  (*set)->Match(named, user, buffer);
  std::vector<std::string> met;
  for (const Applying& one : buffer.applying) met.push_back(one.policy->definition.domain);
  EXPECT_EQ((*set)->HasDomain(named), !met.empty());
  return met;
}

TEST(Domains, ARequestWithoutOneBelongsToTheOnlyOneThereIs) {
  EXPECT_THAT(Met({"web"}, ""), ElementsAre("web"));
  EXPECT_THAT(Met({"web", "websocket"}, ""), ElementsAre("web"));
}

TEST(Domains, TheDefaultComesFirst) {
  EXPECT_THAT(Met({"web", "default"}, ""), ElementsAre("default"));
  EXPECT_THAT(Met({"default", "api", "web"}, ""), ElementsAre("default"));
}

TEST(Domains, NobodyGuessesBetweenSeveral) {
  EXPECT_THAT(Met({"api", "web"}, ""), IsEmpty());
  EXPECT_THAT(Met({"websocket"}, ""), IsEmpty());
  EXPECT_THAT(Met({}, ""), IsEmpty());
}

TEST(Domains, OfSeveralTheOneOfTheFilesIsMeant) {
  EXPECT_THAT(Met({"api", "web"}, "", "web"), ElementsAre("web"));
  EXPECT_THAT(Met({"api", "web"}, "api", "web"), ElementsAre("api"));
  EXPECT_THAT(Met({"api", "default", "web"}, "", "web"), ElementsAre("default"));
  EXPECT_THAT(Met({"api", "web"}, "", "gone"), IsEmpty());
}

TEST(Domains, ADomainThatIsNamedIsMeant) {
  EXPECT_THAT(Met({"web"}, "default"), IsEmpty());
  EXPECT_THAT(Met({"web"}, "shop"), IsEmpty());
  EXPECT_THAT(Met({"web", "websocket"}, "websocket"), ElementsAre("websocket"));
}

}  // namespace
}  // namespace weir::policy
