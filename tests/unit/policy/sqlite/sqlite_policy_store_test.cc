// What SQLite alone does; what all stores do is in tests/conformance/policy.

#include "policy/sqlite/sqlite_policy_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "policy/sqlite/rows.h"
#include "support/temp_dir.h"

namespace weir::policy::sqlite {
namespace {

using ::testing::SizeIs;

class SqlitePolicyStoreTest : public ::testing::Test {
 protected:
  SqlitePolicyStoreTest()
      : database_(
            std::move(*weir::sqlite::Database::Open({.path = (folder_ / "weir.db").string()}))),
        store_(std::move(*SqlitePolicyStore::Open(*database_, catalog_))) {}
  ~SqlitePolicyStoreTest() override { database_.reset(); }  // before the store, whose jobs it runs

  test::TempDir folder_;
  Catalog catalog_{CompileOptions{DefaultPolicy(), 0.1}};
  std::unique_ptr<weir::sqlite::Database> database_;
  std::unique_ptr<SqlitePolicyStore> store_;
};

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
