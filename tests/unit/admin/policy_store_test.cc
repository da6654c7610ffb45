#include "admin/policy_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admin/policy_edit.h"
#include "policy/catalog.h"

namespace weir::policy {
namespace {

using namespace std::chrono_literals;
using ::testing::StartsWith;

StoredPolicy Sample() {
  StoredPolicy policy;
  policy.key = "user-123";
  return policy;
}

TEST(StoredPolicy, BecomesADefinitionForItsKey) {
  const Result<Definition> definition = ToDefinition(Sample());
  ASSERT_TRUE(definition.ok());
  EXPECT_EQ(definition->key, "user-123");
  EXPECT_EQ(definition->name, "user-123");
  EXPECT_FALSE(definition->has_match);
  EXPECT_EQ(definition->quota, *Quota::TokenBucket(100, 10));
}

TEST(StoredPolicy, EachTypeHasItsQuota) {
  StoredPolicy policy = Sample();
  policy.capacity = 7;
  policy.window_seconds = 30;
  policy.buckets = 6;
  policy.type = Algorithm::kSlidingLog;
  EXPECT_EQ(ToDefinition(policy)->quota, *Quota::SlidingLog(7, 30s));
  policy.type = Algorithm::kFixedWindow;
  EXPECT_EQ(ToDefinition(policy)->quota, *Quota::FixedWindow(7, 30s));
  policy.type = Algorithm::kSlidingCounter;
  EXPECT_EQ(ToDefinition(policy)->quota, *Quota::SlidingCounter(7, 30s, 6));
  policy.type = Algorithm::kConcurrency;
  EXPECT_EQ(ToDefinition(policy)->quota, *Quota::Concurrency(7, 30s));
  policy.unlimited = true;
  EXPECT_EQ(ToDefinition(policy)->quota, std::nullopt);
}

TEST(StoredPolicy, SaysHowItCharges) {
  StoredPolicy policy = Sample();
  EXPECT_EQ(BehaviourWords(policy), "local");
  EXPECT_THAT(ToJson(policy), ::testing::Not(::testing::HasSubstr("mode")));
  policy.on_store_error = OnStoreError::kDeny;
  policy.mode = Mode::kLeased;
  policy.overdraw = true;
  policy.charge = ChargeMode::kEach;
  EXPECT_EQ(BehaviourWords(policy), "deny leased overdraw each");
  EXPECT_THAT(ToJson(policy),
              ::testing::HasSubstr(R"("mode":"leased","overdraw":true,"charge":"each")"));
  StoredPolicy read = Sample();
  EXPECT_TRUE(ReadBehaviour(BehaviourWords(policy), read));
  EXPECT_EQ(read, policy);
  // As in files: an overdraft cannot be leased in advance.
  EXPECT_THAT(ToDefinition(policy).error().message, StartsWith("mode: leased: permits that are"));
  policy.mode = Mode::kExact;
  const Result<Definition> definition = ToDefinition(policy);
  ASSERT_TRUE(definition.ok()) << definition.error().message;
  EXPECT_TRUE(definition->overdraw);
  EXPECT_EQ(definition->charge, ChargeMode::kEach);
  policy.overdraw = false;
  policy.mode = Mode::kLeased;
  EXPECT_EQ(ToDefinition(policy)->mode, Mode::kLeased);
  for (const char* wrong : {"", "perhaps", "local often", "local  leased", "local leased "}) {
    EXPECT_FALSE(ReadBehaviour(wrong, read)) << wrong;
  }
}

TEST(StoredPolicy, NamesItsStore) {
  StoredPolicy policy = Sample();
  EXPECT_THAT(ToJson(policy), ::testing::Not(::testing::HasSubstr("store\"")));
  policy.store = "hot";
  EXPECT_EQ(BehaviourWords(policy), "local store=hot");
  EXPECT_THAT(ToJson(policy), ::testing::HasSubstr(R"("store":"hot")"));
  StoredPolicy read = Sample();
  EXPECT_TRUE(ReadBehaviour(BehaviourWords(policy), read));
  EXPECT_EQ(read, policy);
  EXPECT_EQ(ToDefinition(policy)->store, "hot");
  EXPECT_FALSE(ReadBehaviour("local store=", read));
  policy.store = "two words";
  EXPECT_THAT(ToDefinition(policy).error().message, StartsWith("store"));
}

TEST(StoredPolicy, WhatCannotBeLeasedNamesTheMode) {
  StoredPolicy policy = Sample();
  policy.mode = Mode::kLeased;
  policy.type = Algorithm::kAnchoredWindow;
  const Result<Definition> definition = ToDefinition(policy);
  ASSERT_FALSE(definition.ok());
  EXPECT_THAT(definition.error().message, StartsWith("mode: leased: cannot be leased"));
}

TEST(StoredPolicy, WithAMatchItIsForDescriptors) {
  StoredPolicy policy = Sample();
  policy.has_match = true;
  policy.match = {MakeEntryMatch("user", "*")};
  const Result<Definition> definition = ToDefinition(policy);
  ASSERT_TRUE(definition.ok());
  EXPECT_EQ(definition->key, "");
  EXPECT_TRUE(definition->has_match);
}

TEST(StoredPolicy, ABadNumberNamesItsField) {
  const auto said = [](auto change) {
    StoredPolicy policy = Sample();
    change(policy);
    const Result<Definition> definition = ToDefinition(policy);
    EXPECT_FALSE(definition.ok());
    if (definition.ok()) return std::string();
    EXPECT_EQ(definition.error().code, Code::kInvalidArgument);
    return definition.error().message;
  };
  EXPECT_THAT(said([](StoredPolicy& p) { p.key = ""; }), StartsWith("key: "));
  EXPECT_THAT(said([](StoredPolicy& p) { p.key = std::string(257, 'x'); }), StartsWith("key: "));
  EXPECT_THAT(said([](StoredPolicy& p) { p.key = "a\nb"; }), StartsWith("key: "));
  EXPECT_THAT(said([](StoredPolicy& p) { p.capacity = 0; }), StartsWith("capacity: "));
  EXPECT_THAT(said([](StoredPolicy& p) { p.capacity = kMaxLimit + 1; }), StartsWith("capacity: "));
  EXPECT_THAT(said([](StoredPolicy& p) { p.refill_rate = -1; }), StartsWith("refillRate: "));
  EXPECT_THAT(said([](StoredPolicy& p) {
                p.type = Algorithm::kFixedWindow;
                p.window_seconds = 0;
              }),
              StartsWith("windowSeconds: "));
  EXPECT_THAT(said([](StoredPolicy& p) { p.window_seconds = INT64_MAX; }),
              StartsWith("windowSeconds: "));
  EXPECT_THAT(said([](StoredPolicy& p) {
                p.type = Algorithm::kSlidingCounter;
                p.buckets = 0;
              }),
              StartsWith("buckets: "));
  EXPECT_THAT(said([](StoredPolicy& p) { p.cost = 0; }), StartsWith("cost: "));
  EXPECT_THAT(said([](StoredPolicy& p) {
                p.has_match = true;
                p.match = {MakeEntryMatch("a", "1"), MakeEntryMatch("a", "2")};
              }),
              StartsWith("match.a: "));
}

TEST(StoredPolicy, ANumberThatItsTypeDoesNotUseMayBeZero) {
  StoredPolicy policy = Sample();
  policy.window_seconds = 0;
  policy.buckets = 0;
  EXPECT_TRUE(ToDefinition(policy).ok());
  policy.type = Algorithm::kSlidingLog;
  policy.window_seconds = 60;
  policy.refill_rate = 0;
  EXPECT_TRUE(ToDefinition(policy).ok());
  policy.refill_rate = -1;
  EXPECT_FALSE(ToDefinition(policy).ok());
}

TEST(StoredPolicy, JsonHasTheFieldsOfTheAdminApi) {
  StoredPolicy policy = Sample();
  policy.id = 1;
  policy.version = 1;
  EXPECT_EQ(
      ToJson(policy),
      R"({"id":1,"policyKey":"user-123","type":"TOKEN_BUCKET","capacity":100,"refillRate":10,)"
      R"("windowSeconds":60,"shadow":false,"unlimited":false,"onStoreError":"local","cost":1,"version":1})");
  policy.key = "a\"\\\x01";
  policy.type = Algorithm::kSlidingCounter;
  policy.has_match = true;
  policy.match = {MakeEntryMatch("route", "/v1/*")};
  EXPECT_EQ(
      ToJson(policy),
      R"({"id":1,"policyKey":"a\"\\\u0001","type":"SLIDING_COUNTER","capacity":100,"refillRate":10,)"
      R"("windowSeconds":60,"buckets":10,"domain":"default","match":{"route":"/v1/*"},)"
      R"("shadow":false,"unlimited":false,"onStoreError":"local","cost":1,"version":1})");
}

TEST(PolicyType, NamesAreThoseOfTheWire) {
  for (const char* name : {"TOKEN_BUCKET", "SLIDING_WINDOW", "FIXED_WINDOW", "SLIDING_COUNTER",
                           "CONCURRENCY", "OVERRIDE"}) {
    ASSERT_TRUE(ParsePolicyType(name)) << name;
    EXPECT_EQ(PolicyTypeName(*ParsePolicyType(name)), name);
  }
  EXPECT_FALSE(ParsePolicyType("LEAKY_BUCKET"));
}

TEST(PolicyType, TheNamesOfPolicyFilesAreKnownToo) {
  EXPECT_EQ(ParsePolicyType("sliding_log"), PolicyType(Algorithm::kSlidingLog));
  EXPECT_EQ(PolicyTypeName(*ParsePolicyType("sliding_log")), "SLIDING_WINDOW");
}

TEST(StoredPolicy, TellsWhenItExpires) {
  StoredPolicy policy;
  policy.key = "a";
  policy.expires_at = 86'400 * std::int64_t{1'000'000'000};
  EXPECT_THAT(ToJson(policy),
              ::testing::HasSubstr(R"(,"expiresAt":"1970-01-02T00:00:00Z","version":)"));
}

TEST(StoredPolicy, ItsVersionIsReadFromTheFieldAndNotFromATextLikeIt) {
  StoredPolicy policy;
  policy.key = R"(","version":9)";
  policy.version = 7;
  EXPECT_EQ(VersionIn(ToJson(policy)), 7);
  EXPECT_EQ(VersionIn(""), 0);
  EXPECT_EQ(VersionAfter({.action = "delete", .before = ToJson(policy)}), 8);
}

// All policies are applied together, so those of files take up room as well.
TEST(PolicyChange, HasTheWordsOfTheAuditLog) {
  const PolicyEdit edit{.key = "user-123", .who = "me", .action = "policy.undo"};
  const PolicyChange change = ChangeOf(EntryOf(edit, {.before = Sample()}, 7));
  EXPECT_EQ(change.action, "undo");  // and not "delete", although nothing is left
  EXPECT_EQ(change.key, "user-123");
  EXPECT_EQ(change.at, 7);
  EXPECT_EQ(change.after, "");
}

TEST(PolicyEdit, NoMoreAreMadeThanFitBesideThoseOfFiles) {
  std::vector<Definition> managed;
  for (std::size_t i = 0; i < kMaxPolicies - 2; ++i) {
    Definition definition;
    definition.name = "m" + std::to_string(i);
    definition.has_match = true;
    managed.push_back(std::move(definition));
  }
  Catalog catalog(CompileOptions{.default_policy = DefaultPolicy()});
  ASSERT_TRUE(catalog.SetManaged(std::move(managed)).empty());
  const PolicyEdit edit{.key = "user-123", .wanted = Sample(), .action = "policy.create"};
  EXPECT_TRUE(Decide(edit, {.policies = 1}, 1, catalog).ok());
  EXPECT_EQ(Decide(edit, {.policies = 2}, 1, catalog).error().code, Code::kResourceExhausted);
  EXPECT_TRUE(Decide(edit, {.now = Sample(), .policies = 2}, 1, catalog).ok());
}

}  // namespace
}  // namespace weir::policy
