#include "policy/policy_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/keys.h"
#include "policy/policy_file.h"

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

class PolicySetTest : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const PolicySet>> TryCompile(std::string_view text) {
    std::vector<yaml::Problem> problems;
    std::vector<Definition> definitions = ParsePolicies(text, "p.yaml", problems);
    EXPECT_THAT(yaml::ToString(problems), "");
    return PolicySet::Compile(std::move(definitions), {DefaultPolicy(), 0.1}, ids_);
  }

  void Compile(std::string_view text) {
    auto compiled = TryCompile(text);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    set_ = *compiled;
  }

  // The keys of the buckets that a descriptor of this domain is charged to.
  std::vector<std::string> Keys(std::vector<Entry> entries, std::string_view domain = "") {
    set_->Match(domain, entries, buffer_);
    std::vector<std::string> keys;
    for (const Applying& applying : buffer_.applying) {
      std::string key;
      AppendKey(key, applying.policy->key_parts,
                std::span(buffer_.values).subspan(applying.values_begin));
      keys.push_back(std::move(key));
    }
    return keys;
  }

  PolicyIds ids_;
  std::shared_ptr<const PolicySet> set_;
  MatchBuffer buffer_;
};

constexpr std::string_view kApi = R"(
domain: api
policies:
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 10, window: 1s}}}
  - {name: pay, match: {user: "*", route: /v1/pay}, quota: {fixed_window: {limit: 5, window: 1s}}}
  - {name: v2, match: {route: "/v2/*"}, quota: {fixed_window: {limit: 5, window: 1s}}}
  - {name: all, match: {}, quota: {fixed_window: {limit: 1000, window: 1s}}}
)";

TEST_F(PolicySetTest, EveryPolicyWhoseEntriesAreAllThereApplies) {
  Compile(kApi);
  EXPECT_THAT(
      Keys({{"user", "42"}, {"route", "/v1/pay"}}, "api"),
      UnorderedElementsAre("api/per-user|user:42", "api/pay|route:/v1/pay|user:42", "api/all"));
  EXPECT_THAT(Keys({{"route", "/v1/pay"}}, "api"), ElementsAre("api/all"));
  EXPECT_THAT(Keys({{"user", "42"}, {"other", "x"}}, "api"),
              UnorderedElementsAre("api/per-user|user:42", "api/all"));
  EXPECT_THAT(Keys({}, "api"), ElementsAre("api/all"));
}

TEST_F(PolicySetTest, LeasedPoliciesHaveTermsUnlessTheLimitsAreInThisProcess) {
  constexpr std::string_view kLeased = R"(
policies:
  - {name: permits, match: {a: "*"}, mode: leased, quota: {token_bucket: {capacity: 100, refill_per_second: 80}}}
  - {name: rate, match: {b: "*"}, mode: rate_leased, quota: {token_bucket: {capacity: 100, refill_per_second: 80}}}
)";
  Compile(kLeased);
  ASSERT_TRUE(set_->policies()[0].lease && set_->policies()[1].lease);
  EXPECT_EQ(set_->policies()[0].stored_quota()->limit(), 100);
  EXPECT_EQ(set_->policies()[1].lease->rate.burst, 25);
  EXPECT_LT(set_->policies()[1].stored_quota()->limit(), 76) << "three quarters, less a lease";

  std::vector<yaml::Problem> problems;
  CompileOptions options{DefaultPolicy(), 0.1};
  options.leasing = false;
  const auto alone = PolicySet::Compile(ParsePolicies(kLeased, "p.yaml", problems), options, ids_);
  ASSERT_TRUE(alone.ok());
  for (const Policy& policy : (*alone)->policies()) EXPECT_FALSE(policy.lease);
}

TEST_F(PolicySetTest, RatesOfOtherAlgorithmsCannotBeLeased) {
  std::vector<yaml::Problem> problems;
  ParsePolicies(R"(
policies:
  - {name: w, match: {a: "*"}, mode: rate_leased, quota: {fixed_window: {limit: 100, window: 1s}}}
)",
                "p.yaml", problems);
  EXPECT_THAT(
      yaml::ToString(problems),
      HasSubstr("mode: rate_leased: rates cannot be leased: only the rate of a token_bucket"));
}

TEST_F(PolicySetTest, TheOrderOfEntriesDoesNotMatter) {
  Compile(kApi);
  EXPECT_EQ(Keys({{"route", "/v1/pay"}, {"user", "42"}}, "api").size(), 3U);
  EXPECT_THAT(
      Keys({{"route", "/v1/pay"}, {"user", "42"}}, "api"),
      UnorderedElementsAre("api/per-user|user:42", "api/pay|route:/v1/pay|user:42", "api/all"));
}

TEST_F(PolicySetTest, AnotherDomainIsNotConcerned) {
  Compile(kApi);
  EXPECT_THAT(Keys({{"user", "42"}}, "shop"), IsEmpty());
  EXPECT_THAT(Keys({{"user", "42"}}, "default"), IsEmpty());
  EXPECT_TRUE(set_->HasDomain("api"));
  EXPECT_FALSE(set_->HasDomain("default"));
}

TEST_F(PolicySetTest, ValuesUnderAPrefixShareOneBucket) {
  Compile(kApi);
  EXPECT_THAT(Keys({{"route", "/v2/a"}}, "api"),
              UnorderedElementsAre("api/v2|route:/v2/*", "api/all"));
  EXPECT_THAT(Keys({{"route", "/v2/b"}}, "api"),
              UnorderedElementsAre("api/v2|route:/v2/*", "api/all"));
  EXPECT_THAT(Keys({{"route", "/v2/"}}, "api"),
              UnorderedElementsAre("api/v2|route:/v2/*", "api/all"));
  EXPECT_THAT(Keys({{"route", "/v2"}}, "api"), ElementsAre("api/all"));
}

TEST_F(PolicySetTest, TheMoreSpecificPolicyReplacesTheMoreGeneralOne) {
  Compile(R"(
policies:
  - {name: any, match: {route: "*"}, quota: {fixed_window: {limit: 1, window: 1s}}}
  - {name: v1, match: {route: "/v1/*"}, quota: {fixed_window: {limit: 2, window: 1s}}}
  - {name: v1p, match: {route: "/v1/p*"}, quota: {fixed_window: {limit: 3, window: 1s}}}
  - {name: pay, match: {route: /v1/pay}, unlimited: true}
  - {name: pay-day, match: {route: /v1/pay}, quota: {fixed_window: {limit: 4, window: 1d}}}
)");
  EXPECT_THAT(Keys({{"route", "/x"}}), ElementsAre("default/any|route:/x"));
  EXPECT_THAT(Keys({{"route", "/v1/x"}}), ElementsAre("default/v1|route:/v1/*"));
  EXPECT_THAT(Keys({{"route", "/v1/pad"}}), ElementsAre("default/v1p|route:/v1/p*"));
  // Equally specific: both.
  EXPECT_THAT(Keys({{"route", "/v1/pay"}}),
              UnorderedElementsAre("default/pay|route:/v1/pay", "default/pay-day|route:/v1/pay"));
}

TEST_F(PolicySetTest, PoliciesThatAreEachMoreSpecificSomewhereBothApply) {
  Compile(R"(
policies:
  - {name: vip, match: {user: vip, route: "*"}, quota: {fixed_window: {limit: 1, window: 1s}}}
  - {name: pay, match: {user: "*", route: /pay}, quota: {fixed_window: {limit: 2, window: 1s}}}
  - {name: any, match: {user: "*", route: "*"}, quota: {fixed_window: {limit: 3, window: 1s}}}
)");
  EXPECT_THAT(
      Keys({{"user", "vip"}, {"route", "/pay"}}),
      UnorderedElementsAre("default/vip|route:/pay|user:vip", "default/pay|route:/pay|user:vip"));
  EXPECT_THAT(Keys({{"user", "joe"}, {"route", "/x"}}),
              ElementsAre("default/any|route:/x|user:joe"));
}

TEST_F(PolicySetTest, AShadowPolicyReplacesNoEnforcedOne) {
  Compile(R"(
policies:
  - {name: any, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 1s}}}
  - {name: vip, match: {user: vip}, shadow: true, quota: {fixed_window: {limit: 2, window: 1s}}}
)");
  EXPECT_THAT(Keys({{"user", "vip"}}),
              UnorderedElementsAre("default/any|user:vip", "default/vip|user:vip"));
}

TEST_F(PolicySetTest, AnEnforcedPolicyReplacesAMoreGeneralShadowOne) {
  Compile(R"(
policies:
  - {name: any, match: {user: "*"}, shadow: true, quota: {fixed_window: {limit: 1, window: 1s}}}
  - {name: vip, match: {user: vip}, quota: {fixed_window: {limit: 2, window: 1s}}}
)");
  EXPECT_THAT(Keys({{"user", "vip"}}), ElementsAre("default/vip|user:vip"));
  EXPECT_THAT(Keys({{"user", "joe"}}), ElementsAre("default/any|user:joe"));
}

TEST_F(PolicySetTest, DifferentValuesNeverShareAKey) {
  Compile(R"(
policies:
  - {name: two, match: {a: "*", b: "*"}, quota: {fixed_window: {limit: 1, window: 1s}}}
)");
  EXPECT_THAT(Keys({{"a", "x|b:y"}, {"b", "z"}}), ElementsAre("default/two|a:x%7Cb:y|b:z"));
  EXPECT_THAT(Keys({{"a", "x"}, {"b", "y|b:z"}}), ElementsAre("default/two|a:x|b:y%7Cb:z"));
  EXPECT_THAT(Keys({{"a", "x%7Cb:y"}, {"b", "z"}}), ElementsAre("default/two|a:x%257Cb:y|b:z"));
  EXPECT_THAT(Keys({{"a", "\n"}, {"b", ""}}), ElementsAre("default/two|a:%0A|b:"));
}

TEST_F(PolicySetTest, ABareKeyHasItsOwnPolicyOrTheDefault) {
  Compile(R"(
policies:
  - {name: special, key: user-123, quota: {fixed_window: {limit: 7, window: 1s}}}
)");
  EXPECT_EQ(set_->ForKey("user-123").definition.name, "special");
  EXPECT_EQ(set_->ForKey("user-124").definition.name, "default");
  EXPECT_EQ(*set_->ForKey("user-124").quota(), *Quota::TokenBucket(100, 10));
  // A policy for a key matches no descriptors.
  EXPECT_THAT(Keys({{"key", "user-123"}}), IsEmpty());
}

TEST_F(PolicySetTest, NamesAndKeysMustBeUnique) {
  const auto names = TryCompile(R"(
policies:
  - {name: a, match: {}, unlimited: true}
  - {name: a, match: {user: "*"}, unlimited: true}
)");
  ASSERT_FALSE(names.ok());
  EXPECT_EQ(names.error().code, Code::kAlreadyExists);
  EXPECT_THAT(names.error().message,
              HasSubstr("p.yaml:4:5: policy name 'a' is already used by p.yaml:3:5"));
  const auto keys = TryCompile(R"(
policies:
  - {name: a, key: k, unlimited: true}
  - {name: b, key: k, unlimited: true}
)");
  ASSERT_FALSE(keys.ok());
  EXPECT_THAT(keys.error().message, HasSubstr("key 'k'"));
}

TEST_F(PolicySetTest, AnEntryThatIsThereTwiceMatchesWithEitherValue) {
  Compile(R"(
policies:
  - {name: b, match: {tag: b}, quota: {fixed_window: {limit: 1, window: 1s}}}
)");
  EXPECT_THAT(Keys({{"tag", "a"}, {"tag", "b"}}), ElementsAre("default/b|tag:b"));
}

TEST_F(PolicySetTest, NumbersStayTheSameOverReloads) {
  Compile(
      "policies: [{name: a, match: {}, unlimited: true}, {name: b, match: {x: y}, unlimited: "
      "true}]");
  const std::uint32_t b = set_->policies()[1].id;
  Compile(
      "policies: [{name: c, match: {}, unlimited: true}, {name: b, match: {x: y}, unlimited: "
      "true}]");
  EXPECT_EQ(set_->policies()[1].id, b);
  EXPECT_NE(set_->policies()[0].id, b);
}

TEST_F(PolicySetTest, OverrideKeysHoldTheWholeDescriptorInOrder) {
  std::string one;
  std::string other;
  const Entry forward[] = {{"user", "4:2"}, {"ip", "::1"}, {"a:b", "c"}};
  const Entry backward[] = {{"a:b", "c"}, {"ip", "::1"}, {"user", "4:2"}};
  const Quota hourly = *Quota::FixedWindow(1, std::chrono::hours(1));
  AppendOverrideKey(one, "a/b", forward, hourly);
  AppendOverrideKey(other, "a/b", backward, hourly);
  EXPECT_EQ(one, "a%2Fb/%override3600|a%3Ab:c|ip:::1|user:4:2");
  EXPECT_EQ(one, other);
}

TEST(ShareOf, GrantsAPartButAtLeastOnePermit) {
  using namespace std::chrono_literals;
  // A tenth of 100 permits at 10/s: 10 permits, 10 per 10 s.
  EXPECT_EQ(ShareOf(*Quota::TokenBucket(100, 10), 0.1), *Quota::TokenBucket(10, 1, 1s));
  EXPECT_EQ(ShareOf(*Quota::FixedWindow(5, 1s), 0.1), *Quota::FixedWindow(1, 1s));
  EXPECT_EQ(ShareOf(*Quota::SlidingLog(50, 1s), 0.5), *Quota::SlidingLog(25, 1s));
  EXPECT_EQ(ShareOf(*Quota::FixedWindow(5, 1s), 1.0), *Quota::FixedWindow(5, 1s));
}

TEST_F(PolicySetTest, LeasedPoliciesHaveTheirTerms) {
  Compile(
      "policies: [{name: a, match: {}, mode: leased, quota: {fixed_window: {limit: 9, window: "
      "1m}}}]");
  EXPECT_TRUE(set_->policies().at(0).lease.has_value());
  // Not every caller validates a policy itself.
  Definition definition = DefaultPolicy();
  definition.mode = Mode::kLeased;
  definition.quota = *Quota::Concurrency(4, std::chrono::seconds(30));
  const auto compiled = PolicySet::Compile({definition}, {DefaultPolicy(), 0.1}, ids_);
  ASSERT_FALSE(compiled.ok());
  EXPECT_THAT(compiled.error().message, HasSubstr("mode: leased: cannot be leased"));
}

TEST_F(PolicySetTest, TwoPoliciesWithTheSameChainClash) {
  const auto compiled = TryCompile(R"(
policies:
  - {name: a, chain: [{user: b*}, {ip: "*"}], quota: {fixed_window: {limit: 1, window: 1s}}}
  - {name: b, chain: [{user: b*}, {ip: "*"}], quota: {fixed_window: {limit: 2, window: 1s}}}
)");
  ASSERT_FALSE(compiled.ok());
  EXPECT_THAT(compiled.error().message, HasSubstr("the chain of policy 'b' is already used"));
}

TEST_F(PolicySetTest, MoreThanAHundredThousandAreRefused) {
  const auto compiled =
      PolicySet::Compile(std::vector<Definition>(kMaxPolicies + 1), {DefaultPolicy(), 0.1}, ids_);
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.error().code, Code::kResourceExhausted);
}

TEST_F(PolicySetTest, TheStrongestChargeOfADomainCounts) {
  Compile("charge: each\npolicies: [{name: a, match: {}, unlimited: true}]");
  EXPECT_EQ(set_->ChargeModeOf(""), ChargeMode::kEach);
  EXPECT_EQ(set_->ChargeModeOf("default"), ChargeMode::kEach);
  EXPECT_EQ(set_->ChargeModeOf("elsewhere"), ChargeMode::kAllOrNone);
  EXPECT_EQ(set_->policies().at(0).quota(), nullptr);
}

TEST_F(PolicySetTest, ReplacedPoliciesAreListedWhereTheyAreAskedFor) {
  Compile(R"(
policies:
  - {name: all, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 1s}}}
  - {name: vip, match: {user: vip}, quota: {fixed_window: {limit: 9, window: 1s}}}
)");
  const std::vector<Entry> vip = {{"user", "vip"}};
  set_->Match("", vip, buffer_, true);
  ASSERT_EQ(buffer_.applying.size(), 2U);
  for (const Applying& applying : buffer_.applying) {
    const bool replaced = applying.policy->definition.name == "all";
    EXPECT_EQ(applying.replaced_by != nullptr, replaced);
  }
  EXPECT_EQ(Keys(vip).size(), 1U);
}

TEST_F(PolicySetTest, BeyondTheNumbersThereArePoliciesShareOne) {
  for (std::uint32_t i = 0; i + 1 < PolicyIds::kMax; ++i) ids_.IdOf("d", std::to_string(i));
  EXPECT_EQ(ids_.IdOf("d", "one more"), PolicyIds::kMax - 1);
  EXPECT_EQ(ids_.IdOf("d", "and another"), PolicyIds::kMax - 1);
  EXPECT_EQ(ids_.NameOf(ids_.size() - 1)->policy, "(others)");
  EXPECT_EQ(ids_.IdOf("d", "0"), 0U) << "those that have a number keep it";
}

// 10 in 100 years is the slowest possible bucket of 10; seven tenths of it, rounded to whole
// permits and nanoseconds, would be slower.
TEST_F(PolicySetTest, AShareThatNoQuotaCanExpressIsOnePermitPerWindow) {
  const auto slow = Quota::TokenBucket(10, 1, kMaxWindow / 10);
  ASSERT_TRUE(slow.ok());
  EXPECT_EQ(ShareOf(*slow, 0.7), *Quota::FixedWindow(1, slow->window()));
  EXPECT_EQ(ShareOf(*Quota::FixedWindow(10, std::chrono::seconds(1)), 0.7).limit(), 7);
}

TEST_F(PolicySetTest, KeysEscapeWhatIsNotPrintable) {
  std::string key;
  AppendBareKey(key, "a\x7f\x01|%b");
  EXPECT_EQ(key, "key|a%7F%01%7C%25b");
  std::string own;
  const std::vector<Entry> entries = {{"user", "u"}};
  AppendOverrideKey(own, "", entries, *Quota::FixedWindow(1, std::chrono::hours(1)));
  EXPECT_EQ(own, "default/%override3600|user:u");
}

}  // namespace
}  // namespace weir::policy
