#include "policy/sqlite/sqlite_policy_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "policy/sqlite/rows.h"
#include "support/temp_dir.h"

namespace weir::policy::sqlite {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SqlitePolicyStoreTest : public ::testing::Test {
 protected:
  SqlitePolicyStoreTest() { Open(); }
  ~SqlitePolicyStoreTest() override { Close(); }

  void Open() {
    auto database = weir::sqlite::Database::Open({.path = (folder_ / "weir.db").string()});
    ASSERT_TRUE(database.ok());
    database_ = std::move(*database);
    catalog_ = std::make_unique<Catalog>(CompileOptions{DefaultPolicy(), 0.1});
    auto store = SqlitePolicyStore::Open(*database_, *catalog_);
    ASSERT_TRUE(store.ok()) << store.error().message;
    store_ = std::move(*store);
  }
  void Close() {
    database_.reset();
    store_.reset();
  }

  static StoredPolicy Sample(const std::string& key, std::int64_t capacity = 100) {
    StoredPolicy policy;
    policy.key = key;
    policy.capacity = capacity;
    return policy;
  }

  // Waits for one change and tells what came of it.
  template <typename Call>
  static Result<StoredPolicy> Await(Call call) {
    std::promise<Result<StoredPolicy>> promise;
    call([&promise](Result<StoredPolicy> result) { promise.set_value(std::move(result)); });
    return promise.get_future().get();
  }
  Result<StoredPolicy> Create(StoredPolicy policy, const std::string& who = "me") {
    return Await([&](PolicyStore::Done done) { store_->Create(policy, who, std::move(done)); });
  }
  Result<StoredPolicy> Update(StoredPolicy policy) {
    return Await([&](PolicyStore::Done done) { store_->Update(policy, "me", std::move(done)); });
  }
  Result<StoredPolicy> Delete(const std::string& key) {
    return Await([&](PolicyStore::Done done) { store_->Delete(key, "me", std::move(done)); });
  }
  Result<std::vector<PolicyChange>> History(const std::string& key, std::size_t limit) {
    std::promise<Result<std::vector<PolicyChange>>> promise;
    store_->History(key, limit, [&](auto history) { promise.set_value(std::move(history)); });
    return promise.get_future().get();
  }
  std::int64_t LimitInForce(std::string_view key) {
    const auto set = catalog_->live().Current();
    return set->ForKey(key).quota()->limit();
  }

  test::TempDir folder_;
  std::unique_ptr<weir::sqlite::Database> database_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<SqlitePolicyStore> store_;
};

TEST_F(SqlitePolicyStoreTest, AChangeIsInForceWhenItIsToldDone) {
  const Result<StoredPolicy> created = Create(Sample("user-123", 7));
  ASSERT_TRUE(created.ok());
  EXPECT_EQ(created->id, 1);
  EXPECT_EQ(created->version, 1);
  EXPECT_EQ(LimitInForce("user-123"), 7);
  const Result<StoredPolicy> updated = Update(Sample("user-123", 8));
  ASSERT_TRUE(updated.ok());
  EXPECT_EQ(updated->id, 1);
  EXPECT_EQ(updated->version, 2);
  EXPECT_EQ(LimitInForce("user-123"), 8);
  const Result<StoredPolicy> deleted = Delete("user-123");
  ASSERT_TRUE(deleted.ok());
  EXPECT_EQ(deleted->capacity, 8);
  EXPECT_EQ(LimitInForce("user-123"), 100);  // the default
}

TEST_F(SqlitePolicyStoreTest, VersionsGoOnWhenAPolicyIsMadeAgain) {
  ASSERT_TRUE(Create(Sample("a", 1)).ok());  // version 1
  ASSERT_TRUE(Update(Sample("a", 2)).ok());  // version 2
  ASSERT_TRUE(Delete("a").ok());             // what went was version 2
  EXPECT_EQ(Create(Sample("a", 3))->version, 3);
  EXPECT_EQ(Update(Sample("a", 4))->version, 4);
}

TEST_F(SqlitePolicyStoreTest, EverythingSurvivesARestart) {
  StoredPolicy full = Sample("full", 5);
  full.type = PolicyType::kSlidingCounter;
  full.window_seconds = 30;
  full.buckets = 6;
  full.domain = "api";
  full.has_match = true;
  full.match = {MakeEntryMatch("user", "*"), MakeEntryMatch("route", "/v1/*"),
                MakeEntryMatch("tier", "free")};
  full.shadow = true;
  full.on_store_error = OnStoreError::kDeny;
  full.cost = 3;
  full.expires_at = 1'900'000'000'000'000'000;
  const Result<StoredPolicy> created = Create(full);
  ASSERT_TRUE(created.ok());
  ASSERT_TRUE(Create(Sample("other", 9)).ok());
  Close();
  Open();
  ASSERT_TRUE(store_->Get("full").ok());
  EXPECT_EQ(*store_->Get("full"), *created);
  EXPECT_EQ(LimitInForce("other"), 9);
}

TEST_F(SqlitePolicyStoreTest, DuplicatesUnknownAndBadOnesAreToldApart) {
  ASSERT_TRUE(Create(Sample("a")).ok());
  EXPECT_EQ(Create(Sample("a")).error().code, Code::kAlreadyExists);
  EXPECT_EQ(Update(Sample("b")).error().code, Code::kNotFound);
  EXPECT_EQ(Delete("b").error().code, Code::kNotFound);
  EXPECT_EQ(store_->Get("b").error().code, Code::kNotFound);
  const Result<StoredPolicy> bad = Create(Sample("c", 0));
  EXPECT_EQ(bad.error().code, Code::kInvalidArgument);
  EXPECT_THAT(bad.error().message, HasSubstr("capacity"));
  EXPECT_EQ(store_->List("", 10).total, 1U);
}

TEST_F(SqlitePolicyStoreTest, WhatAFileDefinesCannotBeCreated) {
  const std::string path =
      folder_.Write("p.yaml", "policies: [{name: f, key: a, unlimited: true}]").string();
  ASSERT_THAT(catalog_->LoadFiles({path}), IsEmpty());
  const Result<StoredPolicy> created = Create(Sample("a"));
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().code, Code::kAlreadyExists);
  EXPECT_THAT(created.error().message, HasSubstr("p.yaml:1:12"));
}

TEST_F(SqlitePolicyStoreTest, ListsInPages) {
  for (const char* key : {"d", "b", "a", "e", "c"}) ASSERT_TRUE(Create(Sample(key)).ok());
  std::string seen;
  std::string after;
  int pages = 0;
  do {
    const PolicyStore::Page page = store_->List(after, 2);
    EXPECT_EQ(page.total, 5U);
    for (const StoredPolicy& policy : page.policies) seen += policy.key;
    after = page.next;
    ++pages;
  } while (!after.empty());
  EXPECT_EQ(seen, "abcde");
  EXPECT_EQ(pages, 3);
}

TEST_F(SqlitePolicyStoreTest, EveryChangeLeavesAVersion) {
  ASSERT_TRUE(Create(Sample("a", 1), "alice").ok());
  ASSERT_TRUE(Update(Sample("a", 2)).ok());
  ASSERT_TRUE(Delete("a").ok());
  ASSERT_TRUE(Create(Sample("b")).ok());
  const Result<std::vector<PolicyChange>> history = History("a", 10);
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
  EXPECT_THAT(*History("", 2), SizeIs(2));
}

TEST_F(SqlitePolicyStoreTest, ManyAtOnceEndInOneConsistentState) {
  constexpr int kThreads = 4;
  constexpr int kEach = 50;
  std::atomic<int> created{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      // Every thread creates the same keys: each is created once.
      for (int i = 0; i < kEach; ++i) {
        store_->Create(
            Sample("k" + std::to_string(i), i + 1), "t",
            [&](const Result<StoredPolicy>& result) { ++(result.ok() ? created : refused); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(Create(Sample("last")).ok());  // after all the others
  EXPECT_EQ(created.load(), kEach);
  EXPECT_EQ(refused.load(), (kThreads - 1) * kEach);
  EXPECT_EQ(store_->List("", 10).total, static_cast<std::size_t>(kEach) + 1);
  for (int i = 0; i < kEach; ++i) EXPECT_EQ(LimitInForce("k" + std::to_string(i)), i + 1);
}

TEST_F(SqlitePolicyStoreTest, OldEntriesOfTheAuditLogGoAFewAtATime) {
  for (Nanos at = 1; at <= 20; ++at) {
    std::promise<void> written;
    store_->Append({.at = at, .who = "me"}, [&](const auto&) { written.set_value(); });
    written.get_future().wait();
  }
  const auto trim = [&](std::size_t keep, Nanos since, std::size_t most) {
    std::promise<std::size_t> promise;
    store_->Trim(keep, since, most, [&](auto deleted) { promise.set_value(*deleted); });
    return promise.get_future().get();
  };
  const auto ids = [&] {
    std::vector<std::int64_t> found;
    store_->ListEntries(0, 100, [&](const auto& entries) {
      for (const AuditEntry& entry : *entries) found.push_back(entry.id);
    });
    return found;
  };
  EXPECT_EQ(trim(0, 0, 100), 0U);
  EXPECT_EQ(trim(20, 0, 100), 0U);
  EXPECT_EQ(trim(15, 0, 3), 3U);  // 5 are too many, 3 go
  EXPECT_EQ(trim(15, 0, 3), 2U);
  EXPECT_EQ(ids().back(), 6);
  EXPECT_EQ(trim(0, 10, 100), 4U);  // those of 6, 7, 8 and 9
  EXPECT_EQ(ids().back(), 10);
  EXPECT_THAT(ids(), SizeIs(11));
}

TEST_F(SqlitePolicyStoreTest, TheLatestThousandVersionsOfAPolicyAreKept) {
  std::promise<Status> promise;
  database_->Write(
      [](weir::sqlite::Connection& connection) -> Status {
        for (std::size_t i = 1; i <= kMaxVersions + 5; ++i) {
          const std::string version = "{\"version\":" + std::to_string(i) + "}";
          for (const char* key : {"busy", "other"}) {
            if (key == std::string("other") && i > 2) continue;
            if (Status done = AppendVersion(connection, {0, key, 1, "me", "update", "", version});
                !done.ok()) {
              return done;
            }
          }
        }
        return {};
      },
      [&](const Status& written) { promise.set_value(written); });
  ASSERT_TRUE(promise.get_future().get().ok());
  ASSERT_TRUE(database_
                  ->Read([](weir::sqlite::Connection& connection) -> Status {
                    const auto all = ReadVersions(connection, "busy", 10'000);
                    EXPECT_THAT(*all, SizeIs(kMaxVersions));
                    EXPECT_EQ(VersionIn(all->back().after), 6);  // 1 to 5 are gone
                    EXPECT_THAT(*ReadVersions(connection, "other", 10), SizeIs(2));
                    return {};
                  })
                  .ok());
}

}  // namespace
}  // namespace weir::policy::sqlite
