// Tests of SQLite only; those of all stores are in tests/conformance/policy.

#include "admin/sqlite/sqlite_policy_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "admin/sqlite/rows.h"
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
                    EXPECT_EQ(VersionIn(all->back().after), 6);  // 1 to 5 were removed
                    EXPECT_THAT(*ReadVersions(connection, "other", 10), SizeIs(2));
                    return {};
                  })
                  .ok());
}

}  // namespace
}  // namespace weir::policy::sqlite
