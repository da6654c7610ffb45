#include "policy/envoy_config.h"

#include <gmock/gmock.h>

#include <optional>

#include "policy/keys.h"
#include "policy/policy_file.h"
#include "policy/policy_set.h"

namespace weir::policy {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Definition> Parse(std::string_view text) {
  std::vector<yaml::Problem> problems;
  std::vector<Definition> definitions = ParseEnvoyConfig(text, "envoy.yaml", problems);
  EXPECT_THAT(problems, IsEmpty()) << yaml::ToString(problems);
  return definitions;
}

std::string ProblemsOf(std::string_view text) {
  std::vector<yaml::Problem> problems;
  ParseEnvoyConfig(text, "envoy.yaml", problems);
  return yaml::ToString(problems);
}

/// Which policy limits a descriptor, as text: name, quota and bucket; empty if none.
class Matched {
 public:
  explicit Matched(std::vector<Definition> definitions) {
    PolicyIds ids;
    auto set = PolicySet::Compile(std::move(definitions), {DefaultPolicy(), 0.1}, ids);
    EXPECT_TRUE(set.ok()) << set.error().message;
    if (set.ok()) set_ = *set;
  }

  std::string operator()(std::vector<Entry> entries, std::string_view domain = "d") {
    set_->Match(domain, entries, buffer_);
    std::string names;
    for (const Applying& applying : buffer_.applying) {
      names += (names.empty() ? "" : "+") + applying.policy->definition.name;
    }
    return names;
  }

 private:
  std::shared_ptr<const PolicySet> set_;
  MatchBuffer buffer_;
};

TEST(EnvoyConfig, EveryLimitBecomesAFixedWindow) {
  const auto definitions = Parse(R"(
domain: mongo_cps
descriptors:
  - key: database
    value: users
    rate_limit: { unit: second, requests_per_unit: 500 }
  - key: database
    value: default
    rate_limit: { unit: HOUR, requests_per_unit: 7 }
)");
  ASSERT_THAT(definitions, SizeIs(2));
  EXPECT_EQ(definitions[0].domain, "mongo_cps");
  EXPECT_EQ(definitions[0].name, "database_users");
  EXPECT_EQ(definitions[0].quota, *Quota::FixedWindow(500, seconds(1)));
  EXPECT_EQ(definitions[1].quota, *Quota::FixedWindow(7, hours(1)));
  EXPECT_TRUE(definitions[0].ordered);
}

TEST(EnvoyConfig, UnitsHaveEnvoysLengths) {
  const std::vector<std::pair<std::string, std::int64_t>> units = {
      {"second", 1},     {"minute", 60},       {"hour", 3600},      {"day", 86'400},
      {"week", 604'800}, {"month", 2'592'000}, {"year", 31'536'000}};
  for (const auto& [unit, length] : units) {
    const auto definitions =
        Parse("domain: d\ndescriptors: [{ key: a, rate_limit: { unit: " + unit +
              ", requests_per_unit: 1 } }]");
    EXPECT_EQ(definitions.at(0).quota->window(), seconds(length)) << unit;
  }
}

TEST(EnvoyConfig, AValueGoesBeforeTheBareKey) {
  Matched matched(Parse(R"(
domain: d
descriptors:
  - key: remote_address
    rate_limit: { unit: second, requests_per_unit: 10 }
  - key: remote_address
    value: 50.0.0.5
    rate_limit: { unit: second, requests_per_unit: 100 }
)"));
  EXPECT_EQ(matched({{"remote_address", "1.2.3.4"}}), "remote_address");
  EXPECT_EQ(matched({{"remote_address", "50.0.0.5"}}), "remote_address_50.0.0.5");
  EXPECT_EQ(matched({{"remote_address", "1.2.3.4"}}, "other"), "");
}

TEST(EnvoyConfig, ANestedLimitNeedsTheWholeChainInItsOrder) {
  Matched matched(Parse(R"(
domain: d
descriptors:
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit: { unit: day, requests_per_unit: 5 }
  - key: to_number
    rate_limit: { unit: day, requests_per_unit: 100 }
)"));
  EXPECT_EQ(matched({{"message_type", "marketing"}, {"to_number", "1"}}),
            "message_type_marketing.to_number");
  EXPECT_EQ(matched({{"to_number", "1"}}), "to_number");
  EXPECT_EQ(matched({{"message_type", "marketing"}}), "");
  EXPECT_EQ(matched({{"to_number", "1"}, {"message_type", "marketing"}}), "");
  EXPECT_EQ(matched({{"message_type", "other"}, {"to_number", "1"}}), "");
  EXPECT_EQ(matched({{"message_type", "marketing"}, {"to_number", "1"}, {"more", "x"}}), "");
}

TEST(EnvoyConfig, AKeyMayRepeatAlongAChain) {
  Matched matched(Parse(R"(
domain: d
descriptors:
  - key: generic_key
    value: a
    descriptors:
      - key: generic_key
        value: b
        rate_limit: { unit: second, requests_per_unit: 1, name: both }
)"));
  EXPECT_EQ(matched({{"generic_key", "a"}, {"generic_key", "b"}}), "both");
  EXPECT_EQ(matched({{"generic_key", "b"}, {"generic_key", "a"}}), "");
}

TEST(EnvoyConfig, AValueWithoutALimitIsExemptFromThatOfTheKey) {
  Matched matched(Parse(R"(
domain: d
descriptors:
  - key: path
    rate_limit: { unit: second, requests_per_unit: 1 }
  - key: path
    value: /health
)"));
  EXPECT_EQ(matched({{"path", "/x"}}), "path");
  EXPECT_EQ(matched({{"path", "/health"}}), "");
}

TEST(EnvoyConfig, AWildcardMatchesWhatBeginsSo) {
  Matched matched(Parse(R"(
domain: d
descriptors:
  - key: path
    value: /api/*
    rate_limit: { unit: second, requests_per_unit: 1, name: prefix }
  - key: path
    value: /api/exact
    rate_limit: { unit: second, requests_per_unit: 1, name: exact }
  - key: path
    rate_limit: { unit: second, requests_per_unit: 1, name: any }
)"));
  EXPECT_EQ(matched({{"path", "/api/exact"}}), "exact");
  EXPECT_EQ(matched({{"path", "/api/other"}}), "prefix");
  EXPECT_EQ(matched({{"path", "/"}}), "any");
}

TEST(EnvoyConfig, UnlimitedShadowAndZero) {
  const auto definitions = Parse(R"(
domain: d
descriptors:
  - key: free
    rate_limit: { unlimited: true }
  - key: watched
    shadow_mode: true
    detailed_metric: true
    rate_limit: { unit: second, requests_per_unit: 3 }
  - key: banned
    rate_limit: { unit: second, requests_per_unit: 0 }
)");
  ASSERT_THAT(definitions, SizeIs(3));
  EXPECT_FALSE(definitions[0].quota.has_value());
  EXPECT_FALSE(definitions[0].exempt);
  EXPECT_TRUE(definitions[1].shadow);
  EXPECT_FALSE(definitions[0].shadow);
  EXPECT_TRUE(definitions[2].blocked);
  EXPECT_FALSE(definitions[1].blocked);
}

TEST(EnvoyConfig, QuotaModeAndMetadata) {
  const auto definitions = Parse(R"(
domain: d
descriptors:
  - key: tokens
    quota_mode: true
    metadata: { owner: team-a, tags: [x, "1", 1, -2.5e3, true, ~], nested: { "a\"b": 007 } }
    rate_limit: { unit: week, requests_per_unit: 3, name: budget }
)");
  ASSERT_THAT(definitions, SizeIs(1));
  EXPECT_TRUE(definitions[0].quota_mode);
  EXPECT_TRUE(definitions[0].shadow);
  EXPECT_EQ(definitions[0].limit_name, "budget");
  EXPECT_EQ(definitions[0].metadata,
            R"({"owner":"team-a","tags":["x","1",1,-2.5e3,true,null],"nested":{"a\"b":"007"}})");
  EXPECT_THAT(ProblemsOf("domain: d\ndescriptors: [{ key: a, metadata: text, rate_limit: { unit: "
                         "day, requests_per_unit: 3 } }]"),
              HasSubstr("metadata: expected a mapping"));
  EXPECT_THAT(ProblemsOf("domain: d\ndescriptors: [{ key: a, metadata: { b: " +
                         std::string(5000, 'x') + " } }]"),
              HasSubstr("metadata: longer than 4096 bytes"));
}

TEST(EnvoyConfig, ValuesUnderAWildcardShareABucketOnlyIfItSaysSo) {
  const auto keys = [](std::string_view share) {
    const auto definitions =
        Parse("domain: d\ndescriptors: [{ key: path, value: files*, " + std::string(share) +
              " rate_limit: { unit: day, requests_per_unit: 3 } }]");
    std::vector<std::string> out(2);
    const std::vector<std::string> parts = KeyParts(definitions.at(0));
    const std::vector<std::string_view> one = {"files/a"};
    const std::vector<std::string_view> two = {"files/b"};
    AppendKey(out[0], parts, one);
    AppendKey(out[1], parts, two);
    return out;
  };
  EXPECT_NE(keys("")[0], keys("")[1]);
  EXPECT_EQ(keys("share_threshold: true,")[0], keys("share_threshold: true,")[1]);
  EXPECT_THAT(ProblemsOf("domain: d\ndescriptors: [{ key: path, value: one, share_threshold: true, "
                         "rate_limit: { unit: day, requests_per_unit: 3 } }]"),
              HasSubstr("share_threshold"));
}

TEST(EnvoyConfig, HowADomainCharges) {
  const std::string_view rest =
      "descriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 3 } }]";
  const Definition usual = Parse("domain: d\n" + std::string(rest)).at(0);
  EXPECT_EQ(usual.charge, ChargeMode::kReports);
  EXPECT_TRUE(usual.report_counts());
  EXPECT_FALSE(usual.always_counts());
  const Definition strict = Parse("domain: d\ncharge: all_or_none\n" + std::string(rest)).at(0);
  EXPECT_EQ(strict.charge, ChargeMode::kAllOrNone);
  EXPECT_FALSE(strict.report_counts());
  EXPECT_EQ(Parse("domain: d\ncharge: each\n" + std::string(rest)).at(0).charge, ChargeMode::kEach);
  EXPECT_TRUE(Parse("domain: d\ncharge: always\n" + std::string(rest)).at(0).always_counts());
  EXPECT_THAT(ProblemsOf("domain: d\ncharge: some\n" + std::string(rest)), HasSubstr("charge"));
}

TEST(EnvoyConfig, UnknownFieldsAreNamedUnlessLenient) {
  const std::string_view text =
      "domain: d\ndescriptors: [{ key: a, color: red, rate_limit: { unit: day, "
      "requests_per_unit: 3, shape: round } }]";
  EXPECT_THAT(ProblemsOf(text), HasSubstr("'color'"));
  EXPECT_THAT(ProblemsOf(text), HasSubstr("'shape'"));
  std::vector<yaml::Problem> problems;
  EXPECT_THAT(ParseEnvoyConfig(text, "envoy.yaml", problems, true), SizeIs(1));
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_THAT(ParsePolicies(text, "envoy.yaml", problems, true), SizeIs(1));
}

TEST(EnvoyConfig, ReplacesNamesThePoliciesOfThatName) {
  const auto definitions = Parse(R"(
domain: d
descriptors:
  - key: a
    rate_limit: { unit: second, requests_per_unit: 1, name: general }
  - key: b
    rate_limit: { unit: second, requests_per_unit: 1, name: general }
  - key: c
    rate_limit:
      unit: second
      requests_per_unit: 1
      name: special
      replaces: [{ name: general }, { name: unknown }]
)");
  EXPECT_EQ(definitions[0].name, "general");
  EXPECT_EQ(definitions[1].name, "general#2");
  EXPECT_THAT(definitions[2].replaces, ElementsAre("general", "general#2", "unknown"));
}

TEST(EnvoyConfig, WhatItPrintsReadsBackAsTheSamePolicies) {
  const auto definitions = Parse(R"(
domain: "odd: domain"
descriptors:
  - key: "quote\"d"
    value: 'with: # signs'
    rate_limit: { unit: day, requests_per_unit: 0, name: zero, replaces: [{ name: other }] }
    descriptors:
      - key: nested
        value: pre*
        share_threshold: true
        quota_mode: true
        metadata: { "quote\"d": ["1", 1, { deep: false }], "": ~ }
        rate_limit: { unit: week, requests_per_unit: 4294967295, name: other }
  - key: free
    rate_limit: { unlimited: true }
  - key: white
)");
  std::vector<yaml::Problem> problems;
  auto again = ParsePolicies(FormatChains(definitions), "policies.yaml", problems);
  ASSERT_THAT(problems, IsEmpty()) << yaml::ToString(problems) << FormatChains(definitions);
  ASSERT_EQ(again.size(), definitions.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    again[i].source = definitions[i].source;
    EXPECT_EQ(again[i], definitions[i]) << i;
  }
}

TEST(EnvoyConfig, APolicyFileMayBeOneOfEnvoys) {
  std::vector<yaml::Problem> problems;
  const auto definitions = ParsePolicies(
      "domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 3 } }]",
      "any.yaml", problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_THAT(definitions, SizeIs(1));
}

TEST(EnvoyConfig, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(ProblemsOf("descriptors: []"), HasSubstr("domain"));
  EXPECT_THAT(ProblemsOf("domain: d\ndescriptors: [{ value: x }]"), HasSubstr("key"));
  EXPECT_THAT(ProblemsOf("domain: d\ndescriptors: [{ key: a, rate_limit: { unit: eon, "
                         "requests_per_unit: 1 } }]"),
              HasSubstr("got 'eon'"));
  EXPECT_THAT(ProblemsOf("domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day } }]"),
              HasSubstr("requests_per_unit"));
  EXPECT_THAT(ProblemsOf("domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, "
                         "unlimited: true } }]"),
              HasSubstr("not both"));
  EXPECT_THAT(ProblemsOf("domain: d\ndescriptors:\n  - key: a\n  - key: a"),
              HasSubstr("envoy.yaml:4:"));
  EXPECT_THAT(ProblemsOf("domain: d\ndescriptors: [{ key: a, ratelimit: {} }]"),
              HasSubstr("rate_limit"));
  EXPECT_THAT(ProblemsOf("domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, "
                         "requests_per_unit: 1, name: n, replaces: [{ name: n }] } }]"),
              HasSubstr("itself"));
  EXPECT_THAT(ProblemsOf("domain: d\ndescriptors: 7"), HasSubstr("list"));
}

TEST(EnvoyConfig, NestingIsBounded) {
  std::string text = "domain: d\ndescriptors: ";
  for (int i = 0; i < 20; ++i) text += "[{ key: a, descriptors: ";
  text += "[]";
  for (int i = 0; i < 20; ++i) text += "}]";
  EXPECT_NE(ProblemsOf(text), "");
}

}  // namespace
}  // namespace weir::policy
