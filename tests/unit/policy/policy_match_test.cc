// Random policies and descriptors: what a PolicySet finds by its tables is what one finds that
// looks at each policy and each choice of entries.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/keys.h"
#include "policy/policy_file.h"
#include "policy/policy_set.h"

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

class PolicyMatchTest : public ::testing::Test {
 protected:
  void Compile(std::vector<Definition> definitions) {
    auto compiled = PolicySet::Compile(std::move(definitions), {DefaultPolicy()}, ids_);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    set_ = *compiled;
  }
  void Compile(std::string_view text) {
    std::vector<yaml::Problem> problems;
    std::vector<Definition> definitions = ParsePolicies(text, "p.yaml", problems);
    ASSERT_EQ(yaml::ToString(problems), "");
    Compile(std::move(definitions));
  }

  // The keys of the buckets that a descriptor is charged to.
  std::vector<std::string> Keys(const std::vector<Entry>& entries) {
    set_->Match("", entries, buffer_);
    std::vector<std::string> keys;
    for (const Applying& applying : buffer_.applying) {
      AppendKey(keys.emplace_back(), applying.policy->key_parts,
                std::span(buffer_.values).subspan(applying.values_begin));
    }
    return keys;
  }

  PolicyIds ids_;
  std::shared_ptr<const PolicySet> set_;
  MatchBuffer buffer_;
};

// By which of its entries a policy is found depends on the other policies.
TEST_F(PolicyMatchTest,
       AnEntryThatIsThereTwiceMatchesWithEitherValueWhateverOtherPoliciesThereAre) {
  const std::string pay = R"(
policies:
  - {name: pay, match: {tag: pay, ip: "*"}, quota: {fixed_window: {limit: 1, window: 1s}}}
)";
  const std::vector<Entry> entries = {{"tag", "all"}, {"ip", "1"}, {"tag", "pay"}, {"ip", "2"}};
  const auto both = {"default/pay|ip:1|tag:pay", "default/pay|ip:2|tag:pay"};
  for (const std::string other : {"tag", "ip"}) {
    Compile(pay + "  - {name: other, match: {" + other + ": none}, unlimited: true}\n");
    EXPECT_THAT(Keys(entries), UnorderedElementsAreArray(both)) << other;
  }
}

TEST_F(PolicyMatchTest, AnEntryThatIsThereTwiceWithOneValueIsThereOnce) {
  Compile(R"(
policies:
  - {name: pay, match: {tag: pay, ip: "*"}, quota: {fixed_window: {limit: 1, window: 1s}}}
)");
  EXPECT_THAT(Keys({{"tag", "pay"}, {"ip", "1"}, {"tag", "pay"}, {"ip", "1"}}),
              ElementsAre("default/pay|ip:1|tag:pay"));
}

TEST_F(PolicyMatchTest, APolicyForOneValueReplacesNoneForAnother) {
  Compile(R"(
policies:
  - {name: users, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 1s}}}
  - {name: vip, match: {user: vip}, quota: {fixed_window: {limit: 9, window: 1s}}}
)");
  EXPECT_THAT(Keys({{"user", "ann"}, {"user", "vip"}}),
              UnorderedElementsAre("default/users|user:ann", "default/vip|user:vip"));
  EXPECT_THAT(Keys({{"user", "vip"}, {"user", "vip"}}), ElementsAre("default/vip|user:vip"));
}

TEST_F(PolicyMatchTest, TooManyCombinationsOfEntriesAreNotTried) {
  std::string match;
  std::vector<Entry> entries;
  const std::string names = "abcdefghijkl";
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = std::string_view(names).substr(i, 1);
    match += (i == 0 ? "" : ", ") + std::string(name) + ": \"*\"";
    for (const char* value : {"1", "2", "3"}) entries.push_back({name, value});
  }
  Compile("policies:\n  - {name: p, match: {" + match + "}, unlimited: true}\n");
  set_->Match("", entries, buffer_);
  EXPECT_TRUE(buffer_.cut);
  entries.resize(3);
  set_->Match("", entries, buffer_);
  EXPECT_FALSE(buffer_.cut);
}

using Random = std::mt19937;

std::size_t Below(Random& random, std::size_t bound) { return random() % bound; }

bool Matches(const EntryMatch& match, std::string_view value) {
  if (match.kind == MatchKind::kExact) return value == match.text;
  return match.kind == MatchKind::kAny || value.starts_with(match.text);
}

std::vector<EntryMatch> Sorted(std::vector<EntryMatch> match) {
  std::ranges::sort(match, {}, &EntryMatch::name);
  return match;
}

bool MoreSpecific(const std::vector<EntryMatch>& one, const std::vector<EntryMatch>& other) {
  bool more = false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const auto rank = [](const EntryMatch& match) {
      return std::pair(match.kind, match.kind == MatchKind::kPrefix ? match.text.size() : 0);
    };
    if (rank(one[i]) < rank(other[i])) return false;
    more = more || rank(one[i]) > rank(other[i]);
  }
  return more;
}

/// A policy with the values that it matched, in the order of its entries' names.
struct Found {
  const Definition* policy;
  std::vector<std::string> values;
};

void FindAll(const Definition& policy, Descriptor descriptor, Found& found,
             std::vector<Found>& all) {
  const std::vector<EntryMatch> match = Sorted(policy.match);
  const std::size_t at = found.values.size();
  if (at == match.size()) {
    all.push_back(found);
    return;
  }
  for (const Entry& entry : descriptor) {
    if (entry.key != match[at].name || !Matches(match[at], entry.value)) continue;
    found.values.emplace_back(entry.value);
    FindAll(policy, descriptor, found, all);
    found.values.pop_back();
  }
}

bool Replaces(const Found& one, const Found& other) {
  const std::vector<EntryMatch> mine = Sorted(one.policy->match);
  const std::vector<EntryMatch> theirs = Sorted(other.policy->match);
  if (!std::ranges::equal(mine, theirs, {}, &EntryMatch::name, &EntryMatch::name)) return false;
  if (one.policy->shadow && !other.policy->shadow) return false;
  return one.values == other.values && MoreSpecific(mine, theirs);
}

std::set<std::string> Expected(const std::vector<Definition>& policies, Descriptor descriptor) {
  std::vector<Found> all;
  for (const Definition& policy : policies) {
    Found found{&policy, {}};
    FindAll(policy, descriptor, found, all);
  }
  std::set<std::string> keys;
  for (const Found& found : all) {
    const auto replaces = [&](const Found& other) { return Replaces(other, found); };
    if (std::ranges::any_of(all, replaces)) continue;
    const std::vector<EntryMatch> match = Sorted(found.policy->match);
    std::vector<std::string_view> values;
    for (std::size_t i = 0; i < match.size(); ++i) {
      if (match[i].kind == MatchKind::kAny) values.emplace_back(found.values[i]);
    }
    std::string key;
    AppendKey(key, KeyParts(*found.policy), values);
    keys.insert(key);
  }
  return keys;
}

std::string DrawValue(Random& random) {
  std::string value = "/";
  for (std::size_t i = Below(random, 3); i > 0; --i) value += Below(random, 2) == 0 ? 'x' : 'y';
  return value;
}

std::vector<Definition> DrawPolicies(Random& random) {
  std::vector<Definition> policies;
  for (std::size_t i = 1 + Below(random, 8); i > 0; --i) {
    Definition& policy = policies.emplace_back();
    policy.name = "p" + std::to_string(i);
    policy.has_match = true;
    policy.quota = *Quota::TokenBucket(9, 9);
    policy.shadow = Below(random, 4) == 0;
    for (const char* name : {"a", "b", "c"}) {
      if (Below(random, 2) == 0) continue;
      const std::string value = DrawValue(random);
      const std::string texts[] = {"*", value + "*", value};
      policy.match.push_back(MakeEntryMatch(name, texts[Below(random, 3)]));
    }
  }
  return policies;
}

TEST_F(PolicyMatchTest, FindsWhatOneFindsThatLooksAtEverything) {
  constexpr int kSets = 3'000;
  constexpr int kDescriptors = 10;
  Random random(20'261'119);
  for (int i = 0; i < kSets; ++i) {
    const std::vector<Definition> policies = DrawPolicies(random);
    ASSERT_NO_FATAL_FAILURE(Compile(policies));
    for (int k = 0; k < kDescriptors; ++k) {
      std::vector<std::string> values(Below(random, 6));
      for (std::string& value : values) value = DrawValue(random);
      std::vector<Entry> entries;
      for (const std::string& value : values) {
        constexpr std::string_view kNames = "abc";
        entries.push_back({kNames.substr(Below(random, 3), 1), value});
      }
      const std::vector<std::string> keys = Keys(entries);
      ASSERT_EQ(std::set(keys.begin(), keys.end()), Expected(policies, entries))
          << "set " << i << ", descriptor " << k;
    }
  }
}

}  // namespace
}  // namespace weir::policy
