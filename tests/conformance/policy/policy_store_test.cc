// The store of policies, the same for every kind.

#include "admin/policy_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "conformance/policy/policy_node.h"
#include "support/and_mysql.h"

namespace weir::policy {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using PolicyStoreTest = PolicyTest;

INSTANTIATE_TEST_SUITE_P(Stores, PolicyStoreTest,
                         ::testing::ValuesIn(test::AndBothMysqls({"sqlite", "postgres", "mariadb",
                                                                  "redis", "redis_cluster"})),
                         KindName);

TEST_P(PolicyStoreTest, AChangeIsInForceWhenItIsToldDone) {
  const Result<StoredPolicy> created = node_->Create(Sample("user-123", 7));
  ASSERT_TRUE(created.ok());
  EXPECT_EQ(created->id, 1);
  EXPECT_EQ(created->version, 1);
  EXPECT_EQ(node_->LimitInForce("user-123"), 7);
  const Result<StoredPolicy> updated = node_->Update(Sample("user-123", 8));
  ASSERT_TRUE(updated.ok());
  EXPECT_EQ(updated->id, 1);
  EXPECT_EQ(updated->version, 2);
  EXPECT_EQ(node_->LimitInForce("user-123"), 8);
  const Result<StoredPolicy> deleted = node_->Delete("user-123");
  ASSERT_TRUE(deleted.ok());
  EXPECT_EQ(deleted->capacity, 8);
  EXPECT_EQ(node_->LimitInForce("user-123"), 100);  // the default
}

TEST_P(PolicyStoreTest, VersionsGoOnWhenAPolicyIsMadeAgain) {
  ASSERT_TRUE(node_->Create(Sample("a", 1)).ok());  // version 1
  ASSERT_TRUE(node_->Update(Sample("a", 2)).ok());  // version 2
  ASSERT_TRUE(node_->Delete("a").ok());             // deletes version 2
  EXPECT_EQ(node_->Create(Sample("a", 3))->version, 3);
  EXPECT_EQ(node_->Update(Sample("a", 4))->version, 4);
}

TEST_P(PolicyStoreTest, EverythingSurvivesARestart) {
  StoredPolicy full = Sample("full", 5);
  full.type = Algorithm::kSlidingCounter;
  full.window_seconds = 30;
  full.buckets = 6;
  full.domain = "api";
  full.has_match = true;
  full.match = {MakeEntryMatch("user", "*"), MakeEntryMatch("route", "/v1/*"),
                MakeEntryMatch("tier", "free")};
  full.shadow = true;
  full.on_store_error = OnStoreError::kDeny;
  full.overdraw = true;
  full.charge = ChargeMode::kAlways;
  full.cost = 3;
  full.expires_at = 1'900'000'000'000'000'000;
  const Result<StoredPolicy> created = node_->Create(full);
  ASSERT_TRUE(created.ok());
  StoredPolicy other = Sample("other", 9);
  other.mode = Mode::kLeased;
  ASSERT_TRUE(node_->Create(other).ok());
  node_.reset();
  node_ = std::make_unique<PolicyNode>(place_);
  ASSERT_TRUE(node_->store().Get("full").ok());
  EXPECT_EQ(*node_->store().Get("full"), *created);
  EXPECT_EQ(node_->LimitInForce("other"), 9);
}

StoredPolicy OverrideOf(const std::string& domain, const std::string& name, bool shadow) {
  StoredPolicy over;
  over.key = domain + "/" + name;
  over.type = PolicyType::kOverride;
  over.domain = domain;
  over.shadow = shadow;
  return over;
}

TEST_P(PolicyStoreTest, AnOverrideOfAFilePolicyIsKeptAndVersioned) {
  place_.folder().Write("p.yaml",
                        "domain: api\npolicies: [{name: f, match: {}, shadow: true, quota: "
                        "{fixed_window: {limit: 1, window: 1s}}}]");
  const auto load = [&] {
    EXPECT_THAT(node_->catalog().LoadFiles({place_.File("p.yaml")}), IsEmpty());
  };
  const auto shadow = [&] {
    return node_->catalog().live().Current()->policies().front().definition.shadow;
  };
  EXPECT_EQ(node_->Create(OverrideOf("api", "f", false)).error().code, Code::kNotFound);
  load();
  ASSERT_TRUE(node_->Create(OverrideOf("api", "f", false)).ok());
  EXPECT_FALSE(shadow());
  node_.reset();
  node_ = std::make_unique<PolicyNode>(place_);
  load();
  EXPECT_FALSE(shadow());
  EXPECT_EQ(node_->Update(OverrideOf("api", "f", true))->version, 2);
  EXPECT_TRUE(shadow());
  // An override of a file's policy sets nothing else, and stays an override.
  StoredPolicy more = OverrideOf("api", "f", false);
  more.capacity = 7;
  EXPECT_EQ(node_->Update(more).error().code, Code::kInvalidArgument);
  EXPECT_EQ(node_->Update(Sample("api/f")).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(node_->Create(OverrideOf("", "f", false)).error().code, Code::kInvalidArgument);
  StoredPolicy stray = OverrideOf("api", "f", false);
  stray.key = "web/f";
  EXPECT_EQ(node_->Create(stray).error().code, Code::kInvalidArgument);
  ASSERT_TRUE(node_->Update(OverrideOf("api", "f", false)).ok());
  ASSERT_TRUE(node_->Delete("api/f").ok());
  EXPECT_TRUE(shadow());
}

TEST_P(PolicyStoreTest, DuplicatesUnknownAndBadOnesAreToldApart) {
  ASSERT_TRUE(node_->Create(Sample("a")).ok());
  const Result<StoredPolicy> again = node_->Create(Sample("a"));
  EXPECT_EQ(again.error().code, Code::kAlreadyExists);
  EXPECT_THAT(again.error().message, HasSubstr("PUT /admin/policies/{key}"));
  EXPECT_EQ(node_->Update(Sample("b")).error().code, Code::kNotFound);
  EXPECT_EQ(node_->Delete("b").error().code, Code::kNotFound);
  EXPECT_EQ(node_->store().Get("b").error().code, Code::kNotFound);
  const Result<StoredPolicy> bad = node_->Create(Sample("c", 0));
  EXPECT_EQ(bad.error().code, Code::kInvalidArgument);
  EXPECT_THAT(bad.error().message, HasSubstr("capacity"));
  EXPECT_EQ(node_->store().List("", 10).total, 1U);
}

// If it were written, no other change could take effect on any node, not even after a restart.
TEST_P(PolicyStoreTest, WhatCannotBeInForceIsNotWritten) {
  StoredPolicy policy = Sample("a", 5);
  policy.store = "main";
  const Result<StoredPolicy> created = node_->Create(policy);
  ASSERT_TRUE(created.ok()) << created.error().message;
  policy.store = "gone";
  EXPECT_EQ(node_->Update(policy).error().code, Code::kInvalidArgument);
  PolicyEdit back{.key = "a", .wanted = policy, .who = "me", .action = "policy.rollback"};
  EXPECT_EQ(node_->Change(back).error().code, Code::kInvalidArgument);
  EXPECT_THAT(node_->Log(), SizeIs(1));
  ASSERT_TRUE(node_->Create(Sample("b", 7)).ok());
  EXPECT_EQ(node_->LimitInForce("a"), 5);
  EXPECT_EQ(node_->LimitInForce("b"), 7);
  node_.reset();
  node_ = std::make_unique<PolicyNode>(place_);
  EXPECT_EQ(node_->LimitInForce("a"), 5);
}

TEST_P(PolicyStoreTest, APolicyCannotBecomeOneThatAFileDefines) {
  const std::string path =
      place_.folder()
          .Write("p.yaml", "domain: api\npolicies: [{name: a, match: {}, unlimited: true}]")
          .string();
  ASSERT_THAT(node_->catalog().LoadFiles({path}), IsEmpty());
  StoredPolicy policy = Sample("a", 5);
  ASSERT_TRUE(node_->Create(policy).ok());
  policy.has_match = true;
  policy.domain = "api";
  const Result<StoredPolicy> updated = node_->Update(policy);
  ASSERT_FALSE(updated.ok());
  EXPECT_EQ(updated.error().code, Code::kAlreadyExists);
  EXPECT_EQ(node_->LimitInForce("a"), 5);
  // A policy that a file overrides may be changed for when it takes effect again.
  ASSERT_THAT(node_->catalog().LoadFiles({}), IsEmpty());
  ASSERT_TRUE(node_->Update(policy).ok());
  ASSERT_THAT(node_->catalog().LoadFiles({path}), IsEmpty());
  policy.capacity = 6;
  EXPECT_TRUE(node_->Update(policy).ok());
}

TEST_P(PolicyStoreTest, WhatAFileDefinesCannotBeCreated) {
  const std::string path =
      place_.folder().Write("p.yaml", "policies: [{name: f, key: a, unlimited: true}]").string();
  ASSERT_THAT(node_->catalog().LoadFiles({path}), IsEmpty());
  const Result<StoredPolicy> created = node_->Create(Sample("a"));
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().code, Code::kAlreadyExists);
  EXPECT_THAT(created.error().message, HasSubstr("p.yaml:1:12"));
}

TEST_P(PolicyStoreTest, ListsInPages) {
  for (const char* key : {"d", "b", "a", "e", "c"}) ASSERT_TRUE(node_->Create(Sample(key)).ok());
  std::string seen;
  std::string after;
  int pages = 0;
  do {
    const PolicyStore::Page page = node_->store().List(after, 2);
    EXPECT_EQ(page.total, 5U);
    for (const StoredPolicy& policy : page.policies) seen += policy.key;
    after = page.next;
    ++pages;
  } while (!after.empty());
  EXPECT_EQ(seen, "abcde");
  EXPECT_EQ(pages, 3);
}

TEST_P(PolicyStoreTest, EveryChangeLeavesAVersion) {
  ASSERT_TRUE(node_->Create(Sample("a", 1), "alice").ok());
  ASSERT_TRUE(node_->Update(Sample("a", 2)).ok());
  ASSERT_TRUE(node_->Delete("a").ok());
  ASSERT_TRUE(node_->Create(Sample("b")).ok());
  const Result<std::vector<PolicyChange>> history = node_->History("a", 10);
  ASSERT_TRUE(history.ok());
  ASSERT_THAT(*history, SizeIs(3));
  const std::vector<PolicyChange>& changes = *history;
  EXPECT_EQ(changes[0].action, "delete");
  EXPECT_THAT(changes[0].before, HasSubstr("\"capacity\":2"));
  EXPECT_EQ(changes[0].after, "");
  EXPECT_EQ(changes[1].action, "update");
  EXPECT_THAT(changes[1].before, HasSubstr("\"capacity\":1"));
  EXPECT_THAT(changes[1].after, HasSubstr("\"capacity\":2"));
  EXPECT_EQ(changes[2].action, "create");
  EXPECT_EQ(changes[2].who, "alice");
  EXPECT_GT(changes[2].at, 0);
  EXPECT_THAT(*node_->History("", 2), SizeIs(2));
}

TEST_P(PolicyStoreTest, ManyAtOnceEndInOneConsistentState) {
  constexpr int kThreads = 4;
  constexpr int kEach = 50;
  std::atomic<int> created{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      // Every thread creates the same keys: each is created once.
      for (int i = 0; i < kEach; ++i) {
        node_->store().Create(
            Sample("k" + std::to_string(i), i + 1), "t",
            [&](const Result<StoredPolicy>& result) { ++(result.ok() ? created : refused); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(node_->Create(Sample("last")).ok());  // after all the others
  EXPECT_EQ(created.load(), kEach);
  EXPECT_EQ(refused.load(), (kThreads - 1) * kEach);
  EXPECT_EQ(node_->store().List("", 10).total, static_cast<std::size_t>(kEach) + 1);
  for (int i = 0; i < kEach; ++i) EXPECT_EQ(node_->LimitInForce("k" + std::to_string(i)), i + 1);
}

TEST_P(PolicyStoreTest, AnEditOfAVersionThatIsNoLongerInForceIsRefused) {
  ASSERT_TRUE(node_->Create(Sample("a", 1)).ok());  // version 1
  ASSERT_TRUE(node_->Update(Sample("a", 2)).ok());  // version 2
  PolicyEdit stale{.key = "a", .wanted = Sample("a", 3), .who = "me", .action = "t", .version = 1};
  const Result<StoredPolicy> refused = node_->Change(stale);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(node_->LimitInForce("a"), 2);
  stale.wanted.reset();
  EXPECT_EQ(node_->Change(stale).error().code, Code::kFailedPrecondition);
  EXPECT_THAT(node_->Log(), SizeIs(2));  // a refused change leaves no trace
  stale.version = 2;
  EXPECT_TRUE(node_->Change(stale).ok());
  EXPECT_EQ(node_->LimitInForce("a"), 100);  // the default
}

TEST_P(PolicyStoreTest, KeysAreBytesAndNotWords) {
  for (const char* key : {"a", "A", "a ", "\xc3\xa4", "a'; DROP TABLE weir_policy; --"}) {
    ASSERT_TRUE(node_->Create(Sample(key)).ok()) << key;
  }
  EXPECT_EQ(node_->Create(Sample("A")).error().code, Code::kAlreadyExists);
  EXPECT_EQ(node_->store().List("", 10).total, 5U);
  EXPECT_THAT(*node_->History("a", 10), SizeIs(1));
}

TEST_P(PolicyStoreTest, TheAuditLogIsReadInPagesAndByNumber) {
  ASSERT_TRUE(node_->Create(Sample("a", 1), "alice").ok());  // entry 1
  const auto appended = PolicyNode::Await<std::int64_t>([&](auto done) {
    node_->store().Append({.who = "bob", .action = "key.reset", .target = "key:u"}, done);
  });
  ASSERT_TRUE(appended.ok());
  EXPECT_EQ(*appended, 2);
  ASSERT_TRUE(node_->Update(Sample("a", 2)).ok());  // entry 3
  const auto page = PolicyNode::Await<std::vector<AuditEntry>>(
      [&](auto done) { node_->store().ListEntries({.before = 3, .limit = 1}, done); });
  ASSERT_TRUE(page.ok());
  ASSERT_THAT(*page, SizeIs(1));
  EXPECT_EQ(page->front().id, 2);
  EXPECT_EQ(page->front().target, "key:u");
  EXPECT_GT(page->front().at, 0);
  const auto find = [&](std::int64_t id) {
    return PolicyNode::Await<AuditEntry>([&](auto done) { node_->store().FindEntry(id, done); });
  };
  ASSERT_TRUE(find(1).ok());
  EXPECT_EQ(find(1)->who, "alice");
  EXPECT_EQ(find(1)->action, "policy.create");
  EXPECT_EQ(find(99).error().code, Code::kNotFound);
  // Entries of other targets are not part of any policy's history.
  EXPECT_THAT(*node_->History("", 10), SizeIs(2));
}

TEST_P(PolicyStoreTest, NoNameKeepsAnEntryOutOfTheAuditLog) {
  using namespace std::string_literals;
  std::string cut(995, 'x');
  for (int i = 0; i < 10; ++i) cut += "\xc3\xa4";  // the cut falls within a character
  for (const std::string& name : {"a\0b"s, "a\xff\xfe"s, "a"s + cut}) {
    node_->Append({.who = "token " + name, .action = "key.reset", .target = "key:" + name});
    ASSERT_FALSE(node_->Log().empty());
    EXPECT_TRUE(node_->Log().front().target.starts_with("key:a"));
    EXPECT_TRUE(node_->Log().front().who.starts_with("token a"));
  }
  EXPECT_THAT(node_->Log(), SizeIs(3));
}

TEST_P(PolicyStoreTest, OldEntriesOfTheAuditLogGoAFewAtATime) {
  for (Nanos at = 1; at <= 20; ++at) node_->Append({.at = at, .who = "me"});
  EXPECT_EQ(node_->Trim(0, 0, 100), 0U);
  EXPECT_EQ(node_->Trim(20, 0, 100), 0U);
  EXPECT_EQ(node_->Trim(15, 0, 3), 3U);  // 5 exceed the limit, 3 are removed
  EXPECT_EQ(node_->Trim(15, 0, 3), 2U);
  EXPECT_EQ(node_->Ids().back(), 6);
  EXPECT_EQ(node_->Trim(0, 10, 100), 4U);  // entries of 6, 7, 8 and 9
  EXPECT_EQ(node_->Ids().back(), 10);
  EXPECT_THAT(node_->Ids(), SizeIs(11));
}

TEST_P(PolicyStoreTest, TrimmingTheLogLeavesTheHistoryOfPoliciesThatThereAre) {
  ASSERT_TRUE(node_->Create(Sample("kept", 1)).ok());
  ASSERT_TRUE(node_->Update(Sample("kept", 2)).ok());
  node_->Append({.who = "me", .action = "key.reset", .target = "key:kept"});
  // All three are older than that, and none is among the latest 0.
  constexpr Nanos kFarAhead = Nanos{1} << 62;
  EXPECT_GT(node_->Trim(0, kFarAhead, 2), 0U);
  (void)node_->Trim(0, kFarAhead, 2);
  const Result<std::vector<PolicyChange>> history = node_->History("kept", 10);
  ASSERT_TRUE(history.ok());
  ASSERT_THAT(*history, SizeIs(2));
  EXPECT_EQ((*history)[1].action, "create");
  EXPECT_EQ(node_->Update(Sample("kept", 3))->version, 3);
}

}  // namespace
}  // namespace weir::policy
