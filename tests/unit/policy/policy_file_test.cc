#include "policy/policy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Parse {
  explicit Parse(std::string_view text) : definitions(ParsePolicies(text, "p.yaml", problems)) {}

  std::string Said() const { return yaml::ToString(problems); }

  std::vector<yaml::Problem> problems;
  std::vector<Definition> definitions;
};

TEST(PolicyFile, ReadsTheExampleOfTheDesign) {
  const Parse parse(R"(
domain: api
policies:
  - name: per-user
    match: { user: "*" }                # each value has its own bucket
    quota: { token_bucket: { capacity: 100, refill_per_second: 10 } }
  - name: pay
    match: { user: "*", route: /v1/pay }
    quota: { sliding_log: { limit: 5, window: 1m } }
    on_store_error: deny
    shadow: true
)");
  ASSERT_THAT(parse.problems, IsEmpty()) << parse.Said();
  ASSERT_THAT(parse.definitions, SizeIs(2));
  const Definition& user = parse.definitions[0];
  EXPECT_EQ(user.domain, "api");
  EXPECT_EQ(user.name, "per-user");
  EXPECT_THAT(user.match, ElementsAre(EntryMatch{"user", MatchKind::kAny, ""}));
  EXPECT_EQ(user.quota, *Quota::TokenBucket(100, 10));
  EXPECT_EQ(user.on_store_error, OnStoreError::kLocal);
  EXPECT_FALSE(user.shadow);
  EXPECT_EQ(user.source, "p.yaml:4:5");
  const Definition& pay = parse.definitions[1];
  EXPECT_THAT(pay.match, ElementsAre(EntryMatch{"user", MatchKind::kAny, ""},
                                     EntryMatch{"route", MatchKind::kExact, "/v1/pay"}));
  EXPECT_EQ(pay.quota, *Quota::SlidingLog(5, std::chrono::minutes(1)));
  EXPECT_EQ(pay.on_store_error, OnStoreError::kDeny);
  EXPECT_TRUE(pay.shadow);
}

// Nested policies inherit it, and may override it.
TEST(PolicyFile, ReadsHowThePoliciesStateIsCharged) {
  const Parse parse(R"(
charge: each
policies:
  - {name: a, match: {}, mode: leased, quota: {fixed_window: {limit: 9, window: 1m}}}
  - {name: b, match: {}, mode: exact, overdraw: true, quota: {fixed_window: {limit: 9, window: 1m}}}
  - {name: c, match: {}, quota: {fixed_window: {limit: 9, window: 1m}}}
  - name: d
    match: {user: "*"}
    mode: leased
    policies:
      - {name: e, match: {route: /a}, quota: {sliding_log: {limit: 9, window: 1m}}}
      - {name: f, match: {route: /b}, mode: exact, quota: {sliding_log: {limit: 9, window: 1m}}}
)");
  ASSERT_THAT(parse.problems, IsEmpty()) << parse.Said();
  ASSERT_THAT(parse.definitions, SizeIs(5));
  const std::vector<Mode> modes = {Mode::kLeased, Mode::kExact, Mode::kExact, Mode::kLeased,
                                   Mode::kExact};
  for (std::size_t i = 0; i < modes.size(); ++i) {
    EXPECT_EQ(parse.definitions[i].mode, modes[i]) << parse.definitions[i].name;
    EXPECT_EQ(parse.definitions[i].charge, ChargeMode::kEach);
    EXPECT_EQ(parse.definitions[i].overdraw, i == 1);
  }
}

TEST(PolicyFile, APolicyNamesItsStoreAndThoseInItTakeItOver) {
  const Parse parse(R"(
policies:
  - {name: a, match: {}, quota: {fixed_window: {limit: 9, window: 1m}}}
  - name: b
    match: {user: "*"}
    store: hot
    quota: {fixed_window: {limit: 9, window: 1m}}
    policies:
      - {name: c, match: {route: /a}, quota: {sliding_log: {limit: 9, window: 1m}}}
      - {name: d, match: {route: /b}, store: main, quota: {sliding_log: {limit: 9, window: 1m}}}
)");
  ASSERT_THAT(parse.problems, IsEmpty()) << parse.Said();
  std::vector<std::string> stores;
  for (const Definition& definition : parse.definitions) stores.push_back(definition.store);
  EXPECT_EQ(stores, (std::vector<std::string>{"", "hot", "hot", "main"}));
}

TEST(PolicyFile, SaysWhatCannotBeLeased) {
  EXPECT_THAT(Parse(R"(
policies:
  - {name: a, match: {}, mode: often, quota: {fixed_window: {limit: 9, window: 1m}}}
)")
                  .Said(),
              HasSubstr("mode: expected exact, leased or rate_leased, got 'often'"));
  EXPECT_THAT(Parse(R"(
policies:
  - {name: a, match: {}, mode: leased, quota: {concurrency: {limit: 9, lease: 1m}}}
)")
                  .Said(),
              HasSubstr("mode: leased: cannot be leased"));
  EXPECT_THAT(Parse(R"(
policies:
  - {name: a, match: {}, mode: leased, quota: {fixed_window: {limit: 9, window: 100ms}}}
)")
                  .Said(),
              HasSubstr("the window is too short"));
}

TEST(PolicyFile, ReadsEveryAlgorithm) {
  const Parse parse(R"(
policies:
  - {name: a, match: {}, quota: {token_bucket: {capacity: 1_000, refill: 3, period: 2m}}}
  - {name: b, match: {}, quota: {token_bucket: {capacity: 10, refill_per_second: 0.5}}}
  - {name: c, match: {}, quota: {fixed_window: {limit: 7, window: 1h}}}
  - {name: d, match: {}, quota: {sliding_log: {limit: 100, window: PT60M}}}
  - {name: e, match: {}, quota: {sliding_counter: {limit: 9, window: 10s, buckets: 5}}}
  - {name: f, match: {}, quota: {sliding_counter: {limit: 9, window: 10s}}}
  - {name: g, match: {}, quota: {concurrency: {limit: 4, lease: 30s}}}
  - {name: h, match: {user: admin}, unlimited: true}
  - {name: i, match: {user: root}, quota: {unlimited: true}}
  - {name: k, match: {}, quota: {anchored_window: {limit: 100, window: 60m}}}
  - {name: j, key: user-123, cost: 5, quota: {fixed_window: {limit: 7, window: 1d}}}
)");
  using namespace std::chrono_literals;
  ASSERT_THAT(parse.problems, IsEmpty()) << parse.Said();
  ASSERT_THAT(parse.definitions, SizeIs(11));
  EXPECT_EQ(parse.definitions[0].domain, "default");
  EXPECT_EQ(parse.definitions[0].quota, *Quota::TokenBucket(1000, 3, 2min));
  EXPECT_EQ(parse.definitions[1].quota, *Quota::TokenBucket(10, 1, 2s));  // 0.5/s = 1 per 2 s
  EXPECT_EQ(parse.definitions[2].quota, *Quota::FixedWindow(7, 1h));
  EXPECT_EQ(parse.definitions[3].quota, *Quota::SlidingLog(100, 1h));
  EXPECT_EQ(parse.definitions[4].quota, *Quota::SlidingCounter(9, 10s, 5));
  EXPECT_EQ(parse.definitions[5].quota, *Quota::SlidingCounter(9, 10s));
  EXPECT_EQ(parse.definitions[6].quota, *Quota::Concurrency(4, 30s));
  EXPECT_EQ(parse.definitions[7].quota, std::nullopt);
  EXPECT_EQ(parse.definitions[8].quota, std::nullopt);
  EXPECT_EQ(parse.definitions[9].quota, *Quota::AnchoredWindow(100, 1h));
  EXPECT_EQ(parse.definitions[10].key, "user-123");
  EXPECT_EQ(parse.definitions[10].cost, 5);
  EXPECT_FALSE(parse.definitions[10].has_match);
}

TEST(PolicyFile, NestedPoliciesTakeOverWhatStandsAround) {
  const Parse parse(R"(
policies:
  - name: tenants
    match: { tenant: "*" }
    on_store_error: deny
    policies:
      - name: reads
        match: { method: GET }
        quota: { fixed_window: { limit: 10, window: 1s } }
      - name: writes
        match: { method: "P*" }
        on_store_error: allow
        quota: { fixed_window: { limit: 2, window: 1s } }
)");
  ASSERT_THAT(parse.problems, IsEmpty()) << parse.Said();
  ASSERT_THAT(parse.definitions, SizeIs(2));
  EXPECT_THAT(parse.definitions[0].match,
              ElementsAre(EntryMatch{"tenant", MatchKind::kAny, ""},
                          EntryMatch{"method", MatchKind::kExact, "GET"}));
  EXPECT_EQ(parse.definitions[0].on_store_error, OnStoreError::kDeny);
  EXPECT_THAT(parse.definitions[1].match,
              ElementsAre(EntryMatch{"tenant", MatchKind::kAny, ""},
                          EntryMatch{"method", MatchKind::kPrefix, "P"}));
  EXPECT_EQ(parse.definitions[1].on_store_error, OnStoreError::kAllow);
}

TEST(PolicyFile, UnknownFieldsAreNamedWithTheirPlaceAndASuggestion) {
  const Parse parse(R"(domain: api
policies:
  - name: a
    match: { user: "*" }
    quota: { token_bucket: { capacty: 100, refill_per_second: 10 } }
)");
  ASSERT_FALSE(parse.problems.empty());
  // Line 5: four blanks, then "quota: { token_bucket: { " is 25 characters, so column 30.
  EXPECT_THAT(parse.Said(), HasSubstr("p.yaml:5:30: unknown field 'capacty' in token_bucket; "
                                      "did you mean 'capacity'?"));
}

struct Case {
  const char* text;
  const char* said;
};

TEST(PolicyFile, SaysWhatIsWrongAndWhatIsExpected) {
  const Case cases[] = {
      {"policies: 5", "policies: expected a list"},
      {"domin: api\npolicies: []", "did you mean 'domain'?"},
      {"[]", "expected a mapping of fields, got a list"},
      {"policies:\n  - match: {}\n    unlimited: true", "name is missing"},
      {"policies:\n  - name: a\n    unlimited: true", "expected match"},
      {"policies:\n  - name: a\n    match: {}", "expected a quota"},
      {"policies:\n  - name: a\n    match: {}\n    quota: {tokn_bucket: {}}",
       "did you mean 'token_bucket'?"},
      {"policies:\n  - name: a\n    match: {}\n    quota: {fixed_window: {limit: ten, window: 1s}}",
       "fixed_window.limit: expected a whole number, got 'ten'"},
      {"policies:\n  - name: a\n    match: {}\n    quota: {fixed_window: {limit: 10, window: 1}}",
       "expected a number with a unit"},
      {"policies:\n  - name: a\n    match: {}\n    quota: {fixed_window: {limit: 0, window: 1s}}",
       "p.yaml:4:27: fixed_window: "},
      {"policies:\n  - name: a\n    match: {}\n    quota: {fixed_window: {limit: 10}}",
       "fixed_window: window is missing"},
      {"policies:\n  - name: a\n    match: {}\n    quota: {token_bucket: {capacity: 1, refill: 1}}",
       "expected refill_per_second, or refill and period"},
      {"policies:\n  - name: a\n    match: {}\n    unlimited: true\n    on_store_error: maybe",
       "on_store_error: expected allow, deny or local, got 'maybe'"},
      {"policies:\n  - name: a\n    match: {}\n    unlimited: true\n    cost: 0",
       "cost: expected 1 to"},
      {"policies:\n  - name: a\n    match: {}\n    unlimited: true\n    shadow: perhaps",
       "shadow: expected true or false"},
      {"policies:\n  - name: a\n    name: b", "p.yaml:3:5: field 'name' is given twice"},
      {"policies: [", "p.yaml:"},
      {"a: 1\n---\nb: 2", "more than one YAML document"},
      {"policies: &a [*a]", "refers to a node that contains it"},
      {"policies:\n  - name: a\n    match: { ip: * }",
       "p.yaml:3:19: not valid YAML: alias not found"},
      {"a:\n\tb: 1", "use spaces, not tabs"},
      {"policies:\n  - name: a\n   - name: b", "check the indentation"},
      {"policies:\n  - match: { ip: * }",
       "put quotes around a value that starts with *, as in \"*\""},
      {"policies:\n  - match:\n      ip: *\n", "put quotes around a value that starts with *"},
      {"policies:\n  - match: { agent: *-bot }", "put quotes around a value that starts with *"},
  };
  for (const Case& one : cases) {
    const Parse parse(one.text);
    EXPECT_THAT(parse.Said(), HasSubstr(one.said)) << one.text;
  }
}

TEST(PolicyFile, AliasesThatUnfoldToTooMuchAreRefused) {
  // Ten levels of ten aliases each stand for 10^10 values.
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i <= 10; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below;
    for (int j = 1; j < 10; ++j) bomb += ", " + below;
    bomb += "]\n";
  }
  EXPECT_THAT(Parse(bomb).Said(), HasSubstr("too large"));
}

TEST(PolicyFile, DeepNestingIsRefused) {
  EXPECT_THAT(Parse("policies: " + std::string(10000, '[')).Said(), HasSubstr("p.yaml:"));
  std::string nested;
  std::string indent;
  for (int i = 0; i < 10; ++i) {
    nested += indent + "policies:\n" + indent + "  - name: n" + std::to_string(i) + "\n";
    indent += "    ";
  }
  EXPECT_THAT(Parse(nested).Said(), HasSubstr("levels deep"));
}

TEST(PolicyFile, AnchorsCanShareAQuota) {
  const Parse parse(R"(
policies:
  - {name: a, match: {user: "*"}, quota: &q {fixed_window: {limit: 3, window: 1s}}}
  - {name: b, match: {ip: "*"}, quota: *q}
)");
  ASSERT_THAT(parse.problems, IsEmpty()) << parse.Said();
  EXPECT_EQ(parse.definitions[1].quota, parse.definitions[0].quota);
}

TEST(PolicyFile, AValueThatLooksLikeAPatternIsRefused) {
  const auto said = [](const std::string& entry) {
    return Parse("policies:\n  - name: a\n    match: {" + entry +
                 "}\n    quota: {fixed_window: {limit: 1, window: 1s}}\n")
        .Said();
  };
  EXPECT_THAT(said("agent: '*-bot'"),
              HasSubstr("p.yaml:3:20: match.agent: '*-bot' looks like a wildcard, which is not "
                        "supported"));
  EXPECT_THAT(said("v: '~^v[0-9]+$'"), HasSubstr("looks like a regular expression"));
  EXPECT_THAT(said("v: '^v$'"), HasSubstr("looks like a regular expression"));
  EXPECT_THAT(said("v: '/v[0-9]/*'"), HasSubstr("looks like a regular expression"));
  EXPECT_THAT(said("route: '/v1/*/pay'"), HasSubstr("looks like a wildcard"));
  EXPECT_THAT(said("route: '/v1/**'"), HasSubstr("write \"=/v1/**\""));
  EXPECT_THAT(said("route: '/v1/*', user: '*', tier: 'a+b [x] $5'"), IsEmpty());
  EXPECT_THAT(said("agent: '=*-bot', v: '=~x', n: '==1', w: '=a*'"), IsEmpty());
}

TEST(PolicyFile, AValueOfAChainThatLooksLikeAPatternIsRefused) {
  EXPECT_THAT(Parse("policies:\n  - name: a\n    chain: [{agent: '*-bot'}]\n"
                    "    quota: {fixed_window: {limit: 1, window: 1s}}\n")
                  .Said(),
              HasSubstr("chain.agent: '*-bot' looks like a wildcard"));
}

TEST(PolicyFile, ABareKeyThatLooksLikeAPatternIsRefused) {
  EXPECT_THAT(Parse("policies:\n  - name: a\n    key: 'user-*'\n"
                    "    quota: {fixed_window: {limit: 1, window: 1s}}\n")
                  .Said(),
              HasSubstr("p.yaml:3:10: key: 'user-*' looks like a wildcard, but a bare key is "
                        "compared exactly"));
}

TEST(PolicyFile, BareKeysMayHoldAlmostAnything) {
  for (const char* key : {"{{7*7}}", "~joe", "a.+b", "x[0-9]", "=1"}) {
    EXPECT_TRUE(CheckBareKey(key).ok()) << key;
  }
  for (const char* key : {"*", "user-*", "*-bot", "^a", "~^v[0-9]+$"}) {
    EXPECT_FALSE(CheckBareKey(key).ok()) << key;
  }
}

TEST(PolicyFile, AMarkedTextIsMatchedExactlyAndReadBack) {
  for (const std::string text : {"=*-bot", "=~x", "==1", "=a*", "*", "a*", "a", ""}) {
    const Result<EntryMatch> entry = ReadEntryMatch("v", text);
    ASSERT_TRUE(entry.ok()) << text;
    EXPECT_EQ(MatchText(*entry), text);
    EXPECT_EQ(MakeEntryMatch("v", MatchText(*entry)), *entry);
  }
  EXPECT_EQ(PlainMatchText(*ReadEntryMatch("v", "=*-bot")), "*-bot");
  // Values stored before such values were refused keep their meaning.
  EXPECT_EQ(MakeEntryMatch("v", "*-bot"), (EntryMatch{"v", MatchKind::kExact, "*-bot"}));
}

TEST(PolicyFile, AnEmptyFileHasNoPolicies) {
  EXPECT_THAT(Parse("").problems, IsEmpty());
  EXPECT_THAT(Parse("domain: api\n").problems, IsEmpty());
  EXPECT_THAT(Parse("domain: api\npolicies:\n").definitions, IsEmpty());
}

TEST(PolicyFile, AMissingFileIsNamed) {
  std::vector<yaml::Problem> problems;
  LoadPolicyFile("/nonexistent/p.yaml", problems);
  EXPECT_THAT(yaml::ToString(problems),
              HasSubstr("/nonexistent/p.yaml: cannot be read: No such file"));
}

}  // namespace
}  // namespace weir::policy
