// Faults of a SQL store, on real servers: the same tests for PostgreSQL, MariaDB and MySQL.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "conformance/store/client.h"
#include "store/mysql/pool.h"
#include "store/mysql/schema.h"
#include "store/postgres/pool.h"
#include "store/postgres/schema.h"
#include "support/mariadb_server.h"
#include "support/mysql_server.h"
#include "support/postgres_server.h"
#include "support/stopwatch.h"
#include "support/wait.h"

namespace weir::store {
namespace {

using namespace std::chrono_literals;
using conformance::Client;

struct Postgres {
  using Server = test::PostgresServer;
  static Status Migrate(const std::string& url) { return postgres::Migrate(url); }
  static auto OpenPool(const sql::PoolOptions& options) { return postgres::OpenPool(options); }
  static void EndSessions(Server& server) { server.TerminateBackends(); }
  static std::string Damage() { return "UPDATE weir_limits SET state = 'nonsense'"; }
  static std::string LockFor2s() {
    return "BEGIN; SELECT 1 FROM weir_limits FOR UPDATE; SELECT pg_sleep(2); COMMIT";
  }
  static constexpr const char* kFullIn = "extract(epoch FROM full_in)";
  static constexpr const char* kCountSessions =
      "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND "
      "pid <> pg_backend_pid() AND backend_type = 'client backend'";
};

template <typename OneOfTheFamily>
struct MysqlFamily {
  using Server = OneOfTheFamily;
  static Status Migrate(const std::string& url) { return mysql::Migrate(url); }
  static auto OpenPool(const sql::PoolOptions& options) { return mysql::OpenPool(options); }
  static void EndSessions(Server& server) {
    const std::string kills = server.Query(
        "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist "
        "WHERE user = 'weir' AND id <> CONNECTION_ID()");
    server.Query(kills);
  }
  static std::string Damage() { return "UPDATE weir_limits SET state = 'nonsense'"; }
  static std::string LockFor2s() {
    return "BEGIN; SELECT 1 FROM weir_limits FOR UPDATE; SELECT SLEEP(2); COMMIT";
  }
  static constexpr const char* kFullIn = "full_in_seconds";
  static constexpr const char* kCountSessions =
      "SELECT COUNT(*) FROM information_schema.processlist "
      "WHERE db = DATABASE() AND id <> CONNECTION_ID()";
};

/// A separate database per test, on a server that all share.
template <typename Kind>
class SqlStoreTest : public testing::Test, public conformance::Backend {
 protected:
  void SetUp() override {
    const std::string& absence = test::AbsenceOf<typename Kind::Server>();
    if (!absence.empty()) GTEST_SKIP() << absence;
    static int number = 0;
    database_ = "sql" + std::to_string(++number);
    options_.url = Server().CreateDatabase(database_);
    options_.timeout = 5s;
    options_.sweep_interval = 0ms;
  }

  static typename Kind::Server& Server() {
    static typename Kind::Server server;
    return server;
  }
  std::string Query(const std::string& sql) { return Server().Query(sql, database_); }

  void Open() {
    auto pool = Kind::OpenPool(options_);
    if (!pool.ok()) throw std::runtime_error(pool.error().message);
    pool_ = *pool;
  }
  std::unique_ptr<Store> MakeStore(boost::asio::io_context& io, int) override {
    if (pool_ == nullptr) Open();
    return pool_->MakeStore(io);
  }

  /// Makes one charge; returns its status.
  Status Try(Client& client, const Quota& quota) {
    const Charge charge{"k", 1, &quota};
    Decision decision;
    Application application;
    application.charges = std::span(&charge, 1);
    application.decisions = std::span(&decision, 1);
    client.ApplyAnyhow(std::span(&application, 1));
    return application.status;
  }

  const Quota hundred_ = *Quota::FixedWindow(100, kMaxWindow);
  sql::PoolOptions options_;
  std::shared_ptr<sql::Pool> pool_;
  std::string database_;
};

using Kinds = testing::Types<Postgres, MysqlFamily<test::MariadbServer>,
                             MysqlFamily<test::MysqlServer>, MysqlFamily<test::Mysql8Server>>;
TYPED_TEST_SUITE(SqlStoreTest, Kinds);

TYPED_TEST(SqlStoreTest, WhoeverOnlyLooksLeavesNoRows) {
  Client client(*this);
  const Quota leases = *Quota::Concurrency(2, 1min);
  for (int i = 0; i < 20; ++i) {
    const std::string key = "random" + std::to_string(i);
    const Decision peeked = client.Peek(key, this->hundred_, 1);
    EXPECT_TRUE(peeked.allowed());
    EXPECT_EQ(peeked.remaining, 100);
    EXPECT_EQ(client.Refund(key, this->hundred_).remaining, 100);
    EXPECT_EQ(client.Reset(key, this->hundred_).remaining, 100);
    EXPECT_FALSE(client.Release(key, leases, 1));
  }
  EXPECT_EQ(std::stoi(this->Query("SELECT count(*) FROM weir_limits")), 0);
  EXPECT_EQ(client.Charge("random0", this->hundred_).remaining, 99);
  EXPECT_EQ(client.Peek("random0", this->hundred_).remaining, 99);
  EXPECT_EQ(std::stoi(this->Query("SELECT count(*) FROM weir_limits")), 1);
}

TYPED_TEST(SqlStoreTest, LostSessionsAreMadeAgainWithoutAnybodyNoticing) {
  Client client(*this);
  client.Charge("k", this->hundred_);
  for (int i = 0; i < 5; ++i) {
    TypeParam::EndSessions(this->Server());
    EXPECT_EQ(client.Charge("k", this->hundred_).remaining, 98 - i);
  }
}

TYPED_TEST(SqlStoreTest, WhatArrivesTogetherUsesSeveralConnectionsAndNoMoreThanTold) {
  this->options_.connections = 3;
  this->Open();
  std::atomic<bool> done{false};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([this, &done, i] {
        Client client(*this);
        while (!done) (void)client.Charge("k" + std::to_string(i), this->hundred_);
      });
    }
    EXPECT_TRUE(test::WaitUntil([&] { return this->Query(TypeParam::kCountSessions) == "3"; }));
    done = true;
  }
  EXPECT_EQ(this->Query(TypeParam::kCountSessions), "3");
}

TYPED_TEST(SqlStoreTest, AServerThatStandsStillIsAnsweredForInTime) {
  this->options_.timeout = 200ms;
  Client client(*this);
  ASSERT_TRUE(test::WaitUntil([&] { return this->Try(client, this->hundred_).ok(); }));
  client.Reset("k", this->hundred_);
  this->Server().Pause();
  for (int i = 0; i < 3; ++i) {
    const test::Stopwatch watch;
    EXPECT_FALSE(this->Try(client, this->hundred_).ok());
    EXPECT_LT(watch.elapsed(), 200ms + 300ms);  // slack for the test machine
  }
  this->Server().Resume();
  ASSERT_TRUE(test::WaitUntil([&] { return this->Try(client, this->hundred_).ok(); }));
  // Each of the three may have been charged or not, but no more than that.
  const std::int64_t used = 100 - client.Peek("k", this->hundred_).remaining;
  EXPECT_GE(used, 1);
  EXPECT_LE(used, 4);
}

TYPED_TEST(SqlStoreTest, CommittedChargesSurviveACrash) {
  this->options_.timeout = 10s;
  Client client(*this);
  for (int i = 0; i < 10; ++i) client.Charge("k", this->hundred_);
  this->Server().Crash();
  EXPECT_FALSE(this->Try(client, this->hundred_).ok());
  this->Server().Start();
  ASSERT_TRUE(test::WaitUntil([&] {
    const Charge peek{"k", 0, &this->hundred_};
    Decision decision;
    Application application;
    application.op = Op::kPeek;
    application.charges = std::span(&peek, 1);
    application.decisions = std::span(&decision, 1);
    client.ApplyAnyhow(std::span(&application, 1));
    return application.status.ok();
  }));
  EXPECT_EQ(client.Peek("k", this->hundred_).remaining, 90);
}

TYPED_TEST(SqlStoreTest, ARowThatSomebodyElseHoldsTimesOutAndComesBack) {
  this->options_.timeout = 300ms;
  this->options_.connections = 1;
  Client client(*this);
  ASSERT_TRUE(test::WaitUntil([&] { return this->Try(client, this->hundred_).ok(); }));
  std::thread holder([&] { this->Query(TypeParam::LockFor2s()); });
  const auto deadline = std::chrono::steady_clock::now() + 120s;
  bool failed = false;
  while (!failed && std::chrono::steady_clock::now() < deadline) {
    failed = !this->Try(client, this->hundred_).ok();
  }
  EXPECT_TRUE(failed);
  holder.join();
  EXPECT_TRUE(test::WaitUntil([&] { return this->Try(client, this->hundred_).ok(); }));
}

TYPED_TEST(SqlStoreTest, ADamagedRowIsAnErrorUntilTheKeyIsReset) {
  Client client(*this);
  client.Charge("k", this->hundred_);
  this->Query(TypeParam::Damage());
  const Status status = this->Try(client, this->hundred_);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kInternal);
  EXPECT_EQ(client.Reset("k", this->hundred_).remaining, 100);
  EXPECT_EQ(client.Charge("k", this->hundred_).remaining, 99);
}

TYPED_TEST(SqlStoreTest, RowsThatVanishAreMadeAgain) {
  Client client(*this);
  EXPECT_EQ(client.Charge("k", this->hundred_).remaining, 99);
  this->Query("DELETE FROM weir_limits");
  EXPECT_EQ(client.Charge("k", this->hundred_).remaining, 99);
  // The whole table, too, since the user may create tables.
  this->Query("DROP VIEW weir_keys; DROP TABLE weir_limits; DROP TABLE weir_migrations");
  EXPECT_EQ(client.Charge("k", this->hundred_).remaining, 99);
}

TYPED_TEST(SqlStoreTest, TablesAreLeftAloneIfToldSo) {
  this->options_.migrate = false;
  Client client(*this);
  EXPECT_FALSE(this->Try(client, this->hundred_).ok());
  ASSERT_TRUE(TypeParam::Migrate(this->options_.url).ok());
  ASSERT_TRUE(TypeParam::Migrate(this->options_.url).ok());  // again: nothing to do
  // The table and its view.
  EXPECT_EQ(this->Query("SELECT COUNT(DISTINCT component) FROM weir_migrations"), "2");
  EXPECT_TRUE(this->Try(client, this->hundred_).ok());
  this->Query("INSERT INTO weir_migrations(component, version) VALUES ('limits', 99)");
  const Status newer = TypeParam::Migrate(this->options_.url);
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.error().code, Code::kFailedPrecondition);
}

TYPED_TEST(SqlStoreTest, ExpiredRowsAreSweptAndOthersStay) {
  ManualClock clock(Nanos{20'000} * 86'400 * 1'000'000'000);
  this->options_.clock = &clock;
  this->options_.sweep_interval = 5ms;
  this->options_.sweep_grace = 60s;
  const Quota brief = *Quota::FixedWindow(5, 10s);
  Client client(*this);
  for (int i = 0; i < 20; ++i) client.Charge("brief" + std::to_string(i), brief);
  client.Charge("long", this->hundred_);
  EXPECT_EQ(this->Query("SELECT COUNT(*) FROM weir_limits"), "21");
  clock.Advance(10s + 60s - 1ns);  // one nanosecond before the first may be removed
  client.Charge("long", this->hundred_);
  std::this_thread::sleep_for(50ms);  // ten rounds in which nothing may happen
  EXPECT_EQ(this->Query("SELECT COUNT(*) FROM weir_limits"), "21");
  clock.Advance(1ns);
  EXPECT_TRUE(
      test::WaitUntil([&] { return this->Query("SELECT COUNT(*) FROM weir_limits") == "1"; }));
  EXPECT_EQ(client.Peek("long", this->hundred_).remaining, 98);
  EXPECT_EQ(client.Charge("brief0", brief).remaining, 4);
  this->pool_.reset();
}

TYPED_TEST(SqlStoreTest, PeopleReadKeysWithSelect) {
  Client client(*this);
  const auto read = [&](const std::string& columns, const std::string& key) {
    std::string row = this->Query("SELECT " + columns + " FROM weir_keys WHERE id = '" + key + "'");
    std::replace(row.begin(), row.end(), '\t', '|');
    return row;
  };
  client.Charge("window", this->hundred_, 7);
  EXPECT_EQ(read("name, algorithm, charged", "window"), "window|fixed_window|7");
  EXPECT_EQ(read("COUNT(window_end)", "window"), "1");
  client.Charge("bucket", *Quota::TokenBucket(1000, 10, 1s), 500);
  EXPECT_EQ(read("name, algorithm", "bucket"), "bucket|token_bucket");
  // 500 permits at 10 a second.
  const std::string full = TypeParam::kFullIn;
  EXPECT_EQ(read("CASE WHEN " + full + " > 40 AND " + full + " <= 50 THEN 1 ELSE 0 END", "bucket"),
            "1");
  const Quota log = *Quota::SlidingLog(1000, 1h);
  for (int i = 0; i < 300; ++i) client.Charge("log", log, 2);  // a state with a size of two bytes
  EXPECT_EQ(read("algorithm, charged, entries", "log"), "sliding_log|600|300");
  client.Charge("counter", *Quota::SlidingCounter(100, 1h, 10));
  EXPECT_EQ(read("algorithm", "counter"), "sliding_counter");
  client.Charge("lease", *Quota::Concurrency(5, 1h), 3);
  EXPECT_EQ(read("algorithm, charged, entries", "lease"), "concurrency|3|1");
  client.Charge("anchored", *Quota::AnchoredWindow(100, 1h), 4);
  EXPECT_EQ(read("algorithm, charged", "anchored"), "anchored_window|4");
  EXPECT_EQ(this->Query("SELECT COUNT(*) FROM weir_keys"), "6");
  // A key that was limited by several algorithms has a row for each: here one before its lease.
  client.Charge("lease", *Quota::TokenBucket(1000, 10, 1s), 500);
  client.Charge("lease", this->hundred_, 8);
  for (int i = 0; i < 30; ++i) client.Charge("lease", log, 2);
  EXPECT_EQ(read("COUNT(*)", "lease"), "4");
  const auto of_lease = [&](const std::string& columns, const std::string& algorithm) {
    return read(columns, "lease' AND algorithm = '" + algorithm);
  };
  EXPECT_EQ(of_lease("CASE WHEN " + full + " > 40 THEN 1 ELSE 0 END", "token_bucket"), "1");
  EXPECT_EQ(of_lease("charged", "fixed_window"), "8");
  EXPECT_EQ(of_lease("charged, entries", "sliding_log"), "60|30");
  EXPECT_EQ(of_lease("charged, entries", "concurrency"), "3|1");
  // Reservations make a token bucket's size exceed one byte.
  const Quota record = *Quota::Concurrency(100, 1h);
  const Quota bucket = *Quota::TokenBucket(1000, 10, 1s);
  const auto long_rows = [&] {
    return std::stoi(this->Query("SELECT COUNT(*) FROM weir_limits WHERE LENGTH(state) > 130"));
  };
  const int before = long_rows();
  const std::string name = "held" + std::string(kRecordMark);
  for (int i = 0; i < 10; ++i) {
    client.ChargeAll({{name, 1, &record}, {"held", 50, &bucket}});
  }
  EXPECT_EQ(long_rows(), before + 1);
  client.Charge("held", this->hundred_, 8);
  const auto of_held = [&](const std::string& columns, const std::string& algorithm) {
    return read(columns, "held' AND algorithm = '" + algorithm);
  };
  EXPECT_EQ(of_held("CASE WHEN " + full + " > 40 AND " + full + " <= 50 THEN 1 ELSE 0 END",
                    "token_bucket"),
            "1");
  EXPECT_EQ(of_held("charged", "fixed_window"), "8");
}

TYPED_TEST(SqlStoreTest, APoolThatGoesWhileItsServerIsAwayGoesSoon) {
  this->options_.timeout = 30s;
  auto client = std::make_unique<Client>(*this);
  client->Charge("k", this->hundred_);
  this->Server().Pause();
  const test::Stopwatch watch;
  client.reset();
  this->pool_.reset();
  EXPECT_LT(watch.elapsed(), 5s);
  this->Server().Resume();
}

template <typename Kind>
class MysqlFamilyStoreTest : public SqlStoreTest<Kind> {};
using MysqlFamilyKinds =
    testing::Types<MysqlFamily<test::MariadbServer>, MysqlFamily<test::MysqlServer>,
                   MysqlFamily<test::Mysql8Server>>;
TYPED_TEST_SUITE(MysqlFamilyStoreTest, MysqlFamilyKinds);

// Other engines support neither transactions nor row locks.
TYPED_TEST(MysqlFamilyStoreTest, LimitsAreInInnodbWhateverTheServersDefaultIs) {
  TestFixture::Server().Query("SET GLOBAL default_storage_engine = MyISAM");
  this->Open();
  TestFixture::Server().Query("SET GLOBAL default_storage_engine = InnoDB");
  std::cout << "on " << this->Query("SELECT VERSION()") << '\n';
  EXPECT_EQ(this->Query("SELECT engine FROM information_schema.tables "
                        "WHERE table_schema = DATABASE() AND table_name = 'weir_limits'"),
            "InnoDB");
}

// Together they are more than the server takes in one packet.
TYPED_TEST(MysqlFamilyStoreTest, LongLogsOfManyKeysAreWrittenInOneTransaction) {
  const std::string usual = TestFixture::Server().Query("SELECT @@GLOBAL.max_allowed_packet");
  TestFixture::Server().Query("SET GLOBAL max_allowed_packet = 1048576");
  ManualClock clock(Nanos{20'000} * 86'400 * 1'000'000'000);
  this->options_.clock = &clock;
  const Quota log = *Quota::SlidingLog(kMaxLimit, 24h);
  constexpr std::int64_t kCost = kMaxLimit >> 12;  // takes five bytes
  Client client(*this);
  for (int i = 0; i < 1000; ++i, clock.Advance(1ms)) client.Charge("k", log, kCost);
  for (int n = 0; n < 8; ++n) {  // 256 keys, of 8 kB each
    this->Query("INSERT INTO weir_limits SELECT CONCAT(id, '-', " + std::to_string(n) +
                "), state, fresh_at FROM weir_limits");
  }
  std::vector<std::string> keys = {"k"};
  for (int n = 0; n < 8; ++n) {
    for (std::size_t i = keys.size(); i-- > 0;) keys.push_back(keys[i] + "-" + std::to_string(n));
  }
  std::vector<Charge> charges;
  for (const std::string& key : keys) charges.push_back({key, 1, &log});
  const Client::Group group = client.ChargeAll(charges);
  TestFixture::Server().Query("SET GLOBAL max_allowed_packet = " + usual);
  EXPECT_TRUE(group.applied);
  for (const std::string& key : keys) {
    EXPECT_EQ(client.Peek(key, log).remaining, kMaxLimit - 1000 * kCost - 1) << key;
  }
  this->pool_.reset();
}

TEST(MysqlPool, RefusesWrongUrlsAndDatabasesAtOnce) {
  sql::PoolOptions options;
  options.url = "mysql://nowhere";
  EXPECT_FALSE(mysql::OpenPool(options).ok());
  test::MariadbServer server;
  options.url = server.url("no_such_database");
  EXPECT_FALSE(mysql::OpenPool(options).ok());
}

}  // namespace
}  // namespace weir::store
