#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "drivers/sqlite/database.h"
#include "slots/postgres/slot_store.h"
#include "slots/sqlite/slot_store.h"
#include "support/postgres_server.h"
#include "support/slot_store_client.h"
#include "support/temp_dir.h"

namespace weir::slots {

/// An empty store of each kind per test; the PostgreSQL server is shared. Whatever a test does, the
/// counters must match the slots at its end.
class StoreTest : public testing::TestWithParam<std::string> {
 protected:
  static test::PostgresServer& Server() {
    static test::PostgresServer server;
    return server;
  }

  void SetUp() override {
    if (GetParam() == "sqlite") {
      auto database = weir::sqlite::Database::Open({.path = (dir_ / "weir.db").string()});
      ASSERT_TRUE(database.ok()) << database.error().message;
      database_ = std::move(*database);
      auto store = sqlite::SqliteSlotStore::Open(*database_);
      ASSERT_TRUE(store.ok()) << store.error().message;
      store_ = std::move(*store);
    } else {
      static int number = 0;
      name_ = "slots" + std::to_string(++number);
      store_ = std::make_unique<postgres::PostgresSlotStore>(
          postgres::Options{.url = Server().CreateDatabase(name_)});
    }
    client_.emplace(*store_);
  }

  void TearDown() override {
    if (!client_) return;
    const Findings findings = client_->Verify();
    EXPECT_EQ(findings.problems, 0);
    for (const std::string& example : findings.examples) ADD_FAILURE() << example;
    client_.reset();
    store_.reset();
  }

  test::SlotStoreClient& client() { return *client_; }
  SlotStore& store() { return *store_; }
  const std::string& database_name() const { return name_; }

  /// "e0".."eN-1", all requesting the same time.
  std::vector<Ask> Asks(int count, Millis requested, const std::string& prefix = "e",
                        const std::string& tenant = {}) {
    std::vector<Ask> asks;
    for (int i = 0; i < count; ++i) {
      asks.push_back(client().Ask(prefix + std::to_string(i), "pay", requested, tenant));
    }
    return asks;
  }

  /// The count of each window of "pay", without empty ones.
  std::vector<std::pair<Millis, std::int64_t>> Counts() {
    std::vector<std::pair<Millis, std::int64_t>> counts;
    for (const WindowLoad& window : client().Windows("pay")) {
      if (window.count > 0) counts.emplace_back(window.start, window.count);
    }
    return counts;
  }

 private:
  test::TempDir dir_;
  std::unique_ptr<weir::sqlite::Database> database_;
  std::unique_ptr<SlotStore> store_;
  std::optional<test::SlotStoreClient> client_;
  std::string name_;
};

}  // namespace weir::slots
