#include "policy/unreachable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/envoy_config.h"
#include "policy/policy_file.h"

namespace weir::policy {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Warnings(const std::vector<std::string>& policies) {
  std::string text = "policies:\n";
  for (const std::string& policy : policies) {
    text += "  - {" + policy + ", quota: {fixed_window: {limit: 5, window: 1s}}}\n";
  }
  std::vector<yaml::Problem> problems;
  std::vector<Definition> definitions = ParsePolicies(text, "p.yaml", problems);
  EXPECT_EQ(yaml::ToString(problems), "");
  PolicyIds ids;
  const auto set = PolicySet::Compile(std::move(definitions), {DefaultPolicy(), 0.1}, ids);
  EXPECT_TRUE(set.ok()) << set.error().message;
  return Unreachable(**set);
}

TEST(Unreachable, PoliciesThatRequestsMeetAreNotWarnedOf) {
  EXPECT_THAT(
      Warnings({"name: a, match: {ip: '*', route: /v1/*, method: GET}",
                "name: b, match: {ip: 192.0.2.1}", "name: c, match: {ip: '2001:db8::/64'}",
                "name: d, match: {route: checkout, user: 'a b'}", "name: e, key: user-1, cost: 5",
                "name: f, match: {user: '*'}", "name: g, match: {user: vip}, replaces: [f]"}),
      IsEmpty());
}

TEST(Unreachable, ValuesThatNoDoorSendsAreWarnedOf) {
  EXPECT_THAT(Warnings({"name: a, match: {ip: localhost}"}),
              ElementsAre("p.yaml:2:5: policy 'a' applies to no request: ip 'localhost' is not an "
                          "address"));
  EXPECT_THAT(Warnings({"name: a, match: {ip: 10.0.0.0/8}"}),
              ElementsAre(HasSubstr("ip '10.0.0.0/8' is a network")));
  EXPECT_THAT(Warnings({"name: a, match: {ip: '2001:DB8::1'}"}),
              ElementsAre(HasSubstr("are known as '2001:db8::/64'")));
  EXPECT_THAT(Warnings({"name: a, match: {method: get}"}),
              ElementsAre(HasSubstr("methods are upper case")));
  EXPECT_THAT(Warnings({"name: a, match: {method: GET|POST}"}),
              ElementsAre(HasSubstr("is not a single method")));
  EXPECT_THAT(Warnings({"name: a, match: {route: v1/pay}"}),
              ElementsAre(HasSubstr("paths begin with '/'")));
  EXPECT_THAT(Warnings({"name: a, match: {route: '/pay?x=1'}"}),
              ElementsAre(HasSubstr("without the query")));
}

TEST(Unreachable, RoutesThatLimitOneSpellingOfAPathAreWarnedOf) {
  EXPECT_THAT(
      Warnings({"name: a, match: {route: /V1/Pay/}", "name: b, match: {route: '/V1/Pay/*'}",
                "name: c, match: {user: '*', route: /v1//pay}"}),
      ElementsAre(
          "p.yaml:2:5: policy 'a' can be evaded: route '/V1/Pay/' is one spelling of the path; for "
          "`weir proxy` and GET /v1/auth write '/v1/pay', which covers all of them",
          AllOf(HasSubstr("route '/V1/Pay/*' is"), HasSubstr("write '/v1/pay/*', which")),
          HasSubstr("write '/v1/pay', which")));
  EXPECT_THAT(Warnings({"name: a, match: {route: /}", "name: b, match: {route: /a%2Fb}",
                        "name: c, match: {route: /v1/pay/*}", "name: d, match: {route: '/*'}",
                        "name: e, match: {route: Checkout}", "name: f, match: {user: Ada/}"}),
              IsEmpty());
}

TEST(Unreachable, PoliciesThatReplaceEachOtherAreWarnedOf) {
  const std::string a = "name: a, match: {user: '*'}, replaces: [b]";
  const std::string c = "name: c, match: {tenant: '*'}";
  EXPECT_THAT(Warnings({a, "name: b, match: {route: '*'}, replaces: [c, a]", c}),
              ElementsAre("p.yaml:2:5: policies 'a' and 'b' replace each other: neither limits a "
                          "request to which both apply"));
  EXPECT_THAT(Warnings({a, "name: b, match: {route: '*'}, replaces: [c]", c}), IsEmpty());
  EXPECT_THAT(Warnings({a, "name: b, match: {route: '*'}, shadow: true, replaces: [a]"}),
              IsEmpty());
}

TEST(Unreachable, ANameInReplacesThatNoPolicyHasIsWarnedOf) {
  EXPECT_THAT(Warnings({"name: a, match: {user: vip}, replaces: [evrybody]",
                        "name: everybody, match: {user: '*', tenant: '*'}"}),
              ElementsAre("p.yaml:2:5: policy 'a' replaces 'evrybody', but no policy of domain "
                          "'default' has this name"));
}

TEST(Unreachable, AllThatIsWrongWithAPolicyIsSaidAtOnce) {
  EXPECT_THAT(Warnings({"name: a, match: {ip: 10.0.0.0/8, route: v1/login}"}),
              ElementsAre(AllOf(HasSubstr("ip '10.0.0.0/8' is a network"),
                                HasSubstr("; route 'v1/login': paths begin with '/'"))));
}

// What callers put into the chains of Envoy's files is up to them, whatever its name.
TEST(Unreachable, ValuesOfChainsAreNotJudged) {
  std::vector<yaml::Problem> problems;
  std::vector<Definition> definitions = ParseEnvoyConfig(
      "domain: shop\n"
      "descriptors:\n"
      "  - key: merchant\n"
      "    descriptors:\n"
      "      - {key: method, value: refund, rate_limit: {unit: minute, requests_per_unit: 5}}\n",
      "envoy.yaml", problems);
  ASSERT_EQ(yaml::ToString(problems), "");
  PolicyIds ids;
  const auto set = PolicySet::Compile(std::move(definitions), {DefaultPolicy(), 0.1}, ids);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_THAT(Unreachable(**set), IsEmpty());
}

TEST(Unreachable, APolicyThatIsAlwaysReplacedIsWarnedOf) {
  EXPECT_THAT(Warnings({"name: a, match: {user: vip, route: /v1/x}",
                        "name: b, match: {route: /v1/*}, replaces: [a]"}),
              ElementsAre("p.yaml:2:5: policy 'a' applies to no request: policy 'b' applies to all "
                          "the same requests and replaces it"));
}

TEST(Unreachable, ValuesWithSpacesAroundThemAreWarnedOf) {
  EXPECT_THAT(Warnings({"name: a, match: {user: ' vip'}"}),
              ElementsAre(HasSubstr("user ' vip' begins or ends with a space")));
  EXPECT_THAT(Warnings({"name: a, match: {user: 'vip '}"}),
              ElementsAre(HasSubstr("user 'vip ' begins or ends with a space")));
}

TEST(Unreachable, ABeginningOfAddressesIsNotWarnedOf) {
  EXPECT_THAT(Warnings({"name: a, match: {ip: 10.*}"}), IsEmpty());
}

TEST(Unreachable, OnlyAPolicyThatCoversAnotherHidesIt) {
  const auto hidden = [](const std::string& inner, const std::string& outer) {
    return !Warnings({"name: a, " + inner, "name: b, " + outer + ", replaces: [a]"}).empty();
  };
  EXPECT_TRUE(hidden("match: {user: vip, route: /x}", "match: {user: '*'}"));
  EXPECT_TRUE(hidden("match: {user: vip, route: /x}", "match: {user: vip}"));
  EXPECT_FALSE(hidden("match: {user: vip, route: /x}", "match: {user: root}"));
  EXPECT_TRUE(hidden("match: {user: vip-*, route: /x}", "match: {user: v*}"));
  EXPECT_FALSE(hidden("match: {user: '*', route: /x}", "match: {user: v*}"));
  EXPECT_FALSE(hidden("match: {user: bob, route: /x}", "match: {user: v*}"));
  // No policy is replaced by a shadow policy, by a chain, or if it has no match to cover.
  EXPECT_FALSE(hidden("match: {user: vip, route: /x}", "match: {user: '*'}, shadow: true"));
  EXPECT_FALSE(hidden("match: {user: vip, route: /x}", "chain: [{user: '*'}]"));
  EXPECT_FALSE(hidden("key: vip", "match: {user: '*'}"));
  EXPECT_FALSE(hidden("chain: [{user: vip}]", "match: {user: '*'}"));
}

TEST(Unreachable, ACostAboveTheLimitPassesWhereEverythingCountsOrNothingIsMeantTo) {
  EXPECT_THAT(Warnings({"name: a, match: {}, cost: 6, overdraw: true"}), IsEmpty());
  EXPECT_THAT(Warnings({"name: a, match: {}, cost: 6, blocked: true"}), IsEmpty());
  std::vector<yaml::Problem> problems;
  PolicyIds ids;
  const auto set =
      PolicySet::Compile(ParsePolicies("policies: [{name: a, match: {}, cost: 6, unlimited: true}]",
                                       "p.yaml", problems),
                         {DefaultPolicy(), 0.1}, ids);
  EXPECT_THAT(Unreachable(**set), IsEmpty());
}

TEST(Unreachable, ACostAboveTheLimitIsWarnedOf) {
  EXPECT_THAT(Warnings({"name: a, match: {}, cost: 6"}),
              ElementsAre("p.yaml:2:5: policy 'a' refuses every request: each costs 6, more than "
                          "its limit of 5"));
}

}  // namespace
}  // namespace weir::policy
