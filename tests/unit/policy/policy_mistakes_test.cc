// Possible mistakes in a policy file, and their messages: each a sentence that names the field and
// what it accepts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "policy/envoy_config.h"
#include "policy/policy_file.h"
#include "support/temp_dir.h"

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kQuota = "quota: {fixed_window: {limit: 1, window: 1s}}";

std::vector<Definition> Read(const std::string& text) {
  std::vector<yaml::Problem> problems;
  std::vector<Definition> definitions = ParsePolicies(text, "p.yaml", problems);
  EXPECT_EQ(yaml::ToString(problems), "") << text;
  return definitions;
}

std::vector<yaml::Problem> ProblemsOf(const std::string& text) {
  std::vector<yaml::Problem> problems;
  ParsePolicies(text, "p.yaml", problems);
  return problems;
}

/// A file with one policy, given by its fields.
std::string One(const std::string& fields) { return "policies: [{" + fields + "}]"; }
std::string Limited(const std::string& fields) { return One("name: a, " + fields + ", " + kQuota); }
std::string Quoted(const std::string& quota) { return One("name: a, match: {}, quota: " + quota); }

std::string Entries(int count) {
  std::string entries;
  for (int i = 0; i < count; ++i) entries += (i > 0 ? ", e" : "e") + std::to_string(i) + ": x";
  return entries;
}

std::string Chain(int count) {
  std::string items;
  for (int i = 0; i < count; ++i) items += i > 0 ? ", {e: x}" : "{e: x}";
  return "chain: [" + items + "]";
}

struct Case {
  std::string text;
  const char* said;
};

void ExpectAll(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    EXPECT_THAT(yaml::ToString(ProblemsOf(one.text)), HasSubstr(one.said))
        << one.text.substr(0, 200);
  }
}

TEST(PolicyMistakes, NamesAreTextsOf1To256BytesWithoutControlCharacters) {
  const std::string long_name(257, 'n');
  ExpectAll({
      {"domain: [a]", "domain: expected a string, got a list"},
      {"domain: \"\"", "domain: expected 1 to 256 bytes"},
      {"domain: \"a\\x1fb\"", "domain: must not contain control characters"},
      {"domain: \"a\\x7fb\"", "domain: must not contain control characters"},
      {One("name: {x: y}, match: {}, unlimited: true"), "name: expected a string, got a mapping"},
      {One("name: " + long_name + ", match: {}, unlimited: true"), "name: expected 1 to 256 bytes"},
      {Limited("key: [x]"), "key: expected a string, got a list"},
      {Limited("key: " + long_name), "key: expected 1 to 256 bytes"},
      {Limited("match: {\"\": x}"), "match: expected 1 to 256 bytes"},
      {Limited("chain: [{\"\": x}]"), "chain: expected 1 to 256 bytes"},
      {One("name: ~, match: {}, unlimited: true"), "name is missing"},
  });
}

TEST(PolicyMistakes, FieldsOfAnotherType) {
  ExpectAll({
      {"policies: [5]", "policy: expected a mapping of fields, got '5'"},
      {"charge: [each]", "charge: expected a string, got a list"},
      {"charge: some", "charge: expected all_or_none, reports, each or always, got 'some'"},
      {Limited("match: {}, on_store_error: [deny]"), "on_store_error: expected a string"},
      {Limited("match: {}, on_store_error: dney"), "got 'dney'; did you mean 'deny'?"},
      {Limited("match: {}, mode: lesed"), "or rate_leased, got 'lesed'; did you mean 'leased'?"},
      {"charge: alway\n" + Limited("match: {}"), "got 'alway'; did you mean 'always'?"},
      {Limited("match: {}, mode: [leased]"), "mode: expected a string"},
      {Limited("match: {}, cost: [1]"), "cost: expected a whole number, got a list"},
      {Limited("match: {}, cost: '5'"), "cost: expected a whole number, got '5'"},
      {Limited("match: {}, cost: 1000001"), "cost: expected 1 to 1000000, got 1000001"},
      {Limited("match: {}, shadow: [x]"), "shadow: expected true or false, got a list"},
      {Limited("match: {}, shadow: 'true'"), "shadow: expected true or false, got 'true'"},
      {Limited("match: {}, replaces: {a: b}"), "replaces: expected a string or a list of strings"},
      {Limited("match: {}, replaces: [[b]]"), "replaces: expected a string, got a list"},
      {Limited("match: {}, replaces: [b, a]"), "replaces: a policy cannot replace itself"},
  });
}

TEST(PolicyMistakes, WhatAPolicyMatches) {
  const std::string long_value(1025, 'v');
  ExpectAll({
      {Limited("match: [user]"), "match: expected entries such as"},
      {Limited("match: {user: [x]}"), "match.user: expected a string"},
      {Limited("match: {user: " + long_value + "}"), "match.user: longer than 1024 bytes"},
      {Limited("match: {" + Entries(17) + "}"), "match: more than 16 entries"},
      {One("name: a, match: {user: x}, policies: [{name: b, match: {user: y}, unlimited: true}]"),
       "match.user: the enclosing policy already matches it"},
      {Limited("match: {user: x}, chain: [{user: x}]"), "give either match or chain"},
      {Limited("chain: {user: x}"), "chain: expected 1 to 16 entries"},
      {Limited("chain: []"), "chain: expected 1 to 16 entries"},
      {Limited(Chain(17)), "chain: expected 1 to 16 entries"},
      {Limited("chain: [user]"), "chain: each item must be one entry"},
      {Limited("chain: [{user: x, ip: y}]"), "chain: each item must be one entry"},
      {Limited("chain: [{user: [x]}]"), "chain.user: expected a string"},
      {Limited("chain: [{user: " + long_value + "}]"), "a value is longer than 1024 bytes"},
      {Limited("chain: [{user: '*'}], share: [ip]"), "share: 'ip' is not an entry of the chain"},
      {Limited("chain: [{user: x}], share: user"), "share: 'user' is not an entry of the chain"},
      {Limited("match: {user: '*'}, share: [user]"), "share: 'user' is not an entry"},
      {One("name: a, chain: [{user: x}], policies: [{name: b}], unlimited: true"),
       "a policy with a chain cannot contain others"},
      {One("name: a, match: {}, exempt: true"), "exempt requires a chain"},
  });
  EXPECT_THAT(Read(Limited("match: {" + Entries(16) + "}")), SizeIs(1));
}

TEST(PolicyMistakes, WhatAPolicyGrants) {
  ExpectAll({
      {Limited("match: {}, unlimited: true"), "give either unlimited or a quota"},
      {One("name: a, match: {}, unlimited: true, blocked: true"), "blocked requires a quota"},
      {One("name: a, chain: [{k: v}], exempt: true, blocked: true"), "blocked requires a quota"},
      {One("name: a, match: {}, blocked: true, policies: [{name: b, unlimited: true}]"),
       "blocked requires a quota"},
      {Quoted("5"), "quota: expected exactly one of token_bucket"},
      {Quoted("{fixed_window: {limit: 1, window: 1s}, sliding_log: {limit: 1, window: 1s}}"),
       "quota: expected exactly one of token_bucket"},
      {Quoted("{fixed_window: 5}"), "fixed_window: expected a mapping of fields, got '5'"},
      {Quoted("{fixed_window: {limit: 1, window: [1s]}}"),
       "fixed_window.window: expected a duration such as 10s or 1m, got a list"},
      {Quoted("{SLIDING_WINDOW: {limit: 1, window: 1s}}"), "did you mean 'sliding_log'?"},
      {Quoted("{sliding_window: {limit: 1, window: 1s}}"), "did you mean 'sliding_log'?"},
      {Quoted("{leaky: {}}"), "quota: unknown algorithm 'leaky'; expected token_bucket"},
      {Quoted("{token_bucket: {capacity: 1}}"),
       "token_bucket: expected refill_per_second, or refill and period"},
      {Quoted("{token_bucket: {capacity: 1, refill_per_second: 1, refill: 1}}"),
       "give refill_per_second, or refill and period, but not both"},
      {Quoted("{token_bucket: {capacity: 1, refill_per_second: 1, period: 1s}}"),
       "give refill_per_second, or refill and period, but not both"},
      {Quoted("{token_bucket: {capacity: 1, refill_per_second: 1.}}"), "at most six decimals"},
      {Quoted("{token_bucket: {capacity: 1, refill_per_second: 0.1234567}}"),
       "at most six decimals"},
      {Quoted("{token_bucket: {capacity: 1, refill_per_second: ten}}"), "at most six decimals"},
      {Quoted("{token_bucket: {capacity: 1, refill_per_second: [1]}}"), "at most six decimals"},
      {One("name: a, match: {}, overdraw: true, quota: {concurrency: {limit: 1, lease: 1s}}"),
       "overdraw: a concurrency quota cannot be overdrawn"},
      {Limited("match: {}, overdraw: true, mode: leased"),
       "permits that are overdrawn cannot be leased"},
  });
}

TEST(PolicyMistakes, InFilesOfEnvoysService) {
  const auto descriptor = [](const std::string& fields) {
    return "domain: d\ndescriptors: [{key: a, " + fields + "}]";
  };
  const auto limit = [&](const std::string& fields) {
    return descriptor("rate_limit: {" + fields + "}");
  };
  ExpectAll({
      {"domain: d\ndescriptors: [5]", "descriptor: expected a mapping of fields, got '5'"},
      {descriptor("value: " + std::string(1025, 'v')), "value: longer than 1024 bytes"},
      {"domain: d\ndescriptors: [{key: a, value: b}, {key: a, value: b}]",
       "descriptor: 'a_b' is already defined here"},
      {descriptor("rate_limit: 5"), "rate_limit: expected a mapping of fields, got '5'"},
      {limit("unit: day, requests_per_unit: -1"), "requests_per_unit: expected 0 to 4294967295"},
      {limit("unit: day, requests_per_unit: 4294967296"),
       "requests_per_unit: expected 0 to 4294967295"},
      {limit("unit: day, requests_per_unit: 1, replaces: b"), "replaces: expected a list"},
      {limit("unit: day, requests_per_unit: 1, replaces: [{name: ''}]"),
       "replaces: name must not be empty"},
  });
}

// What is written for them must parse again, whatever bytes the values have.
TEST(PolicyFields, EnvoysValuesOfAnyBytesReadBack) {
  const std::vector<Definition> read = Read(R"(
domain: d
descriptors:
  - key: k
    value: "a\\b\x01\x7f"
    shadow_mode: true
    rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: x}, {name: y}]}
  - {key: x, descriptors: [], rate_limit: {unit: day, requests_per_unit: 1, name: x}}
  - {key: y, rate_limit: {unit: day, requests_per_unit: 1, name: y}}
  - {key: white, descriptors: []}
)");
  ASSERT_THAT(read, SizeIs(4));
  EXPECT_EQ(read[0].name, "k_a\\b??") << "names show no control characters";
  EXPECT_TRUE(read[3].exempt);
  std::vector<Definition> again = Read(FormatChains(read));
  ASSERT_THAT(again, SizeIs(read.size()));
  for (std::size_t i = 0; i < read.size(); ++i) {
    again[i].source = read[i].source;
    EXPECT_EQ(again[i], read[i]) << i;
  }
  EXPECT_THAT(Read(FormatChains({})), IsEmpty());
}

TEST(PolicyMistakes, OfManyOnlyTheFirstAreTold) {
  std::string text = "policies:\n";
  for (int i = 0; i < 50; ++i) text += "  - 5\n";
  EXPECT_THAT(ProblemsOf(text), SizeIs(20));
}

TEST(PolicyMistakes, ALongUnknownFieldIsCutAndNothingIsSuggestedForIt) {
  const std::string said =
      yaml::ToString(ProblemsOf(Limited(std::string(65, 'x') + ": 1, match: {}")));
  EXPECT_THAT(said, HasSubstr("unknown field '" + std::string(64, 'x') + "…'"));
  EXPECT_THAT(said, HasSubstr("; expected one of: name, match"));
}

TEST(PolicyMistakes, WhatIsNotOneYamlTree) {
  ExpectAll({
      {"? [a]\n: b", "a field name must be a string"},
      {std::string((16U << 20U) + 1, ' '), "larger than 16777216 bytes"},
  });
}

TEST(PolicyMistakes, FilesThatCannotBePolicyFiles) {
  const test::TempDir dir;
  std::vector<yaml::Problem> problems;
  EXPECT_THAT(LoadPolicyFile(dir.path().string(), problems), IsEmpty());
  EXPECT_THAT(yaml::ToString(problems), HasSubstr("is a directory; expected a file"));
  problems.clear();
  std::string text;
  EXPECT_FALSE(yaml::ReadFile(dir.Write("p.yaml", "12345").string(), 4, text, problems));
  EXPECT_THAT(yaml::ToString(problems), HasSubstr("larger than 4 bytes"));
  problems.clear();
  EXPECT_TRUE(yaml::ReadFile((dir / "p.yaml").string(), 5, text, problems));
  EXPECT_EQ(text, "12345");
}

// Docker creates an empty folder where a file to be mounted is missing.
TEST(PolicyMistakes, AFolderThatIsCalledLikeAFileIsNotOneWithoutPolicies) {
  const test::TempDir dir;
  const std::string path = (dir / "policies.yaml").string();
  std::filesystem::create_directory(path);
  std::vector<yaml::Problem> problems;
  EXPECT_THAT(PolicyFiles({path}, problems), ElementsAre(path));
  EXPECT_THAT(LoadPolicyFile(path, problems), IsEmpty());
  EXPECT_THAT(yaml::ToString(problems), HasSubstr("is a directory; expected a file"));
}

// Its reader would wait until something writes, even when the program is told to end.
TEST(PolicyMistakes, ANamedPipeIsNotAFile) {
  const test::TempDir dir;
  const std::string path = (dir / "policies.yaml").string();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::vector<yaml::Problem> problems;
  EXPECT_THAT(LoadPolicyFile(path, problems), IsEmpty());
  EXPECT_THAT(yaml::ToString(problems), HasSubstr("is a named pipe; expected a file"));
}

// The part of a file that could be read may be valid, with fewer policies.
TEST(PolicyMistakes, AFileThatCannotBeReadToItsEnd) {
  std::vector<yaml::Problem> problems;
  EXPECT_THAT(LoadPolicyFile("/proc/self/mem", problems), IsEmpty());  // nothing can be read at 0
  EXPECT_THAT(yaml::ToString(problems), HasSubstr("/proc/self/mem: cannot be read: "));
}

// A copy on a full disk leaves a file like this.
TEST(PolicyMistakes, AFileWithNothingInIt) {
  const test::TempDir dir;
  std::vector<yaml::Problem> problems;
  EXPECT_THAT(LoadPolicyFile(dir.Write("p.yaml", "").string(), problems), IsEmpty());
  EXPECT_THAT(yaml::ToString(problems), HasSubstr("is empty; write \"policies: []\""));
  for (const char* none : {"policies: []\n", "domain: d\ndescriptors: []\n"}) {
    problems.clear();
    EXPECT_THAT(LoadPolicyFile(dir.Write("p.yaml", none).string(), problems), IsEmpty());
    EXPECT_THAT(problems, IsEmpty());
  }
}

TEST(PolicyMistakes, AFileWithoutAListOfPolicies) {
  const test::TempDir dir;
  for (const char* left :
       {"\n", "# policies:\n", "domain: d\n", "domain: d\npolicies:\n", "{}\n"}) {
    std::vector<yaml::Problem> problems;
    EXPECT_THAT(LoadPolicyFile(dir.Write("p.yaml", left).string(), problems), IsEmpty());
    EXPECT_THAT(yaml::ToString(problems), HasSubstr("\"policies: []\" if there are none")) << left;
  }
}

TEST(PolicyFields, TruthHasTheWordsOfYaml) {
  for (const char* yes : {"true", "yes", "on"}) {
    EXPECT_TRUE(Read(Limited(std::string("match: {}, shadow: ") + yes)).at(0).shadow) << yes;
  }
  for (const char* no : {"false", "no", "off"}) {
    EXPECT_FALSE(Read(Limited(std::string("match: {}, shadow: ") + no)).at(0).shadow) << no;
  }
}

TEST(PolicyFields, OneTextMayStandForAListOfOne) {
  EXPECT_THAT(Read(Limited("match: {}, replaces: b")).at(0).replaces, ::testing::ElementsAre("b"));
}

// Of two entries with the same name, only the one with a wildcard has values to share.
TEST(PolicyFields, ShareIsOfTheEntriesWithAWildcard) {
  const Definition policy = Read(Limited("chain: [{k: '*'}, {k: x}], share: [k]")).at(0);
  EXPECT_TRUE(policy.match.at(0).shared);
  EXPECT_FALSE(policy.match.at(1).shared);
}

TEST(PolicyFields, NamesOfModesReadBack) {
  for (const OnStoreError rule :
       {OnStoreError::kAllow, OnStoreError::kDeny, OnStoreError::kLocal}) {
    EXPECT_EQ(ParseOnStoreError(OnStoreErrorName(rule)), rule);
  }
  for (const Mode mode : {Mode::kExact, Mode::kLeased}) EXPECT_EQ(ParseMode(ModeName(mode)), mode);
  for (const ChargeMode mode :
       {ChargeMode::kAllOrNone, ChargeMode::kReports, ChargeMode::kEach, ChargeMode::kAlways}) {
    EXPECT_EQ(ParseChargeMode(ChargeModeName(mode)), mode);
  }
}

TEST(PolicyFields, OnlyUnusualChargingIsWritten) {
  const auto written = [](Mode mode, bool overdraw, ChargeMode charge) {
    std::string text;
    JsonWriter json(text);
    json.BeginObject();
    AppendCharging(json, mode, overdraw, charge);
    json.EndObject();
    return text;
  };
  EXPECT_EQ(written(Mode::kExact, false, ChargeMode::kAllOrNone), "{}");
  EXPECT_EQ(written(Mode::kLeased, true, ChargeMode::kEach),
            R"({"mode":"leased","overdraw":true,"charge":"each"})");
}

TEST(PolicyMistakes, WhatALimitOfEnvoyLacksIsNamed) {
  const auto with = [](const std::string& limit) {
    return "domain: d\ndescriptors: [{ key: a, rate_limit: { " + limit + " } }]";
  };
  ExpectAll({{with("unit: day"), "rate_limit: requests_per_unit is missing"},
             {with("requests_per_unit: 3"), "rate_limit: unit is missing"},
             {with("unit: day, requests_per_unit: -1"), "expected 0 to 4294967295, got -1"},
             {with("unit: fortnight, requests_per_unit: 3"), "or year, got 'fortnight'"}});
}

}  // namespace
}  // namespace weir::policy
