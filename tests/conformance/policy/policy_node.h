#pragma once

// A node with policies of each kind of store: an empty database for each test, one server for all.

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "admin/mysql/policy_store.h"
#include "admin/policy_store.h"
#include "admin/postgres/policy_store.h"
#include "admin/redis/policy_store.h"
#include "admin/sqlite/policy_memory.h"
#include "admin/sqlite/sqlite_policy_store.h"
#include "policy/catalog.h"
#include "support/mariadb_server.h"
#include "support/mysql_server.h"
#include "support/postgres_server.h"
#include "support/redis_cluster.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"

namespace weir::policy {

inline StoredPolicy Sample(const std::string& key, std::int64_t capacity = 100,
                           Nanos expires_at = 0) {
  StoredPolicy policy;
  policy.key = key;
  policy.capacity = capacity;
  policy.expires_at = expires_at;
  return policy;
}

/// Where nodes keep their policies. Databases are emptied and reused, which is much faster
/// than creating new ones.
class PolicyPlace {
 public:
  explicit PolicyPlace(std::string kind) : kind_(std::move(kind)), number_(places_++) {
    const std::string name = "policies" + std::to_string(number_);
    if (kind_ == "postgres") url_ = Empty(Postgres(), name);
    if (kind_ == "mariadb") url_ = Empty(Mariadb(), name);
    if (kind_ == "mysql") url_ = Empty(Mysql(), name);
    if (kind_ == "mysql8") url_ = Empty(Mysql8(), name);
    if (kind_ == "redis") {
      url_ = Redis().url() + "/" + std::to_string(number_);
      Redis().Command({"-n", std::to_string(number_), "FLUSHDB"});
    }
    if (kind_ == "redis_cluster") {
      url_ = Cluster().url();
      for (std::size_t i = 0; i < Cluster().size(); ++i) Cluster().node(i).Command({"FLUSHALL"});
    }
  }
  ~PolicyPlace() { --places_; }
  PolicyPlace(const PolicyPlace&) = delete;
  PolicyPlace& operator=(const PolicyPlace&) = delete;

  const std::string& kind() const { return kind_; }
  const std::string& url() const { return url_; }
  std::string File(const std::string& name) const { return (folder_ / name).string(); }
  const test::TempDir& folder() const { return folder_; }

  bool is_redis() const { return kind_.starts_with("redis"); }

  Result<std::unique_ptr<PolicyStore>> OpenShared(Catalog& catalog, shared::Options options) const {
    if (is_redis()) return redis::Open(url_, catalog, std::move(options));
    return kind_ == "postgres" ? postgres::Open(url_, catalog, std::move(options))
                               : mysql::Open(url_, catalog, std::move(options));
  }

  /// Runs SQL in the database.
  void Query(const std::string& sql) const {
    const std::string name = "policies" + std::to_string(number_);
    if (kind_ == "postgres") Postgres().Query(sql, name);
    if (kind_ == "mariadb") Mariadb().Query(sql, name);
    if (kind_ == "mysql") Mysql().Query(sql, name);
    if (kind_ == "mysql8") Mysql8().Query(sql, name);
  }

  static test::PostgresServer& Postgres() {
    static test::PostgresServer server;
    return server;
  }
  static test::MariadbServer& Mariadb() {
    static test::MariadbServer server;
    return server;
  }
  static test::RedisServer& Redis() {
    static test::RedisServer server;
    return server;
  }
  static test::RedisCluster& Cluster() {
    static test::RedisCluster cluster({.replicas = false});
    return cluster;
  }
  static test::MysqlServer& Mysql() {
    static test::MysqlServer server;
    return server;
  }
  static test::Mysql8Server& Mysql8() {
    static test::Mysql8Server server;
    return server;
  }

 private:
  template <typename Server>
  static std::string Empty(Server& server, const std::string& name) {
    static std::set<std::string> made;
    if (made.insert(name).second) return server.CreateDatabase(name);
    server.Query(
        "DROP TABLE IF EXISTS weir_policy, weir_policy_match, weir_policy_state, weir_audit, "
        "weir_migrations",
        name);
    return server.url(name);
  }

  static inline int places_ = 0;  // that exist now
  const std::string kind_;
  const int number_;
  std::string url_;
  test::TempDir folder_;
};

/// A catalog and a store of policies, as a process has them.
class PolicyNode {
 public:
  explicit PolicyNode(const PolicyPlace& place, shared::Options options = {}) {
    if (place.kind() == "sqlite") {
      database_ = std::move(*weir::sqlite::Database::Open({.path = place.File("weir.db")}));
      store_ = std::move(*sqlite::SqlitePolicyStore::Open(*database_, catalog_));
      return;
    }
    auto store = place.OpenShared(catalog_, std::move(options));
    if (!store.ok()) throw std::runtime_error(store.error().message);
    store_ = std::move(*store);
  }
  ~PolicyNode() { database_.reset(); }  // before the store, whose jobs it runs
  PolicyNode(const PolicyNode&) = delete;
  PolicyNode& operator=(const PolicyNode&) = delete;

  PolicyStore& store() { return *store_; }
  Catalog& catalog() { return catalog_; }

  Result<StoredPolicy> Create(const StoredPolicy& policy, const std::string& who = "me") {
    return Await<StoredPolicy>([&](auto done) { store_->Create(policy, who, done); });
  }
  Result<StoredPolicy> Update(const StoredPolicy& policy) {
    return Await<StoredPolicy>([&](auto done) { store_->Update(policy, "me", done); });
  }
  Result<StoredPolicy> Delete(const std::string& key) {
    return Await<StoredPolicy>([&](auto done) { store_->Delete(key, "me", done); });
  }
  Result<StoredPolicy> Change(const PolicyEdit& edit) {
    return Await<StoredPolicy>([&](auto done) { store_->Change(edit, done); });
  }
  Result<std::vector<PolicyChange>> History(const std::string& key, std::size_t limit) {
    return Await<std::vector<PolicyChange>>([&](auto done) { store_->History(key, limit, done); });
  }
  std::vector<AuditEntry> Log() {
    return *Await<std::vector<AuditEntry>>(
        [&](auto done) { store_->ListEntries({.limit = 100}, done); });
  }
  std::size_t Trim(std::size_t keep, Nanos since, std::size_t most) {
    return *Await<std::size_t>([&](auto done) { store_->Trim(keep, since, most, done); });
  }
  /// The ids of the log, latest first.
  std::vector<std::int64_t> Ids() {
    std::vector<std::int64_t> ids;
    for (const AuditEntry& entry : Log()) ids.push_back(entry.id);
    return ids;
  }
  /// The default policy's 100 if the key has no policy.
  std::int64_t LimitInForce(std::string_view key) {
    return catalog_.live().Current()->ForKey(key).quota()->limit();
  }

  void Append(const AuditEntry& entry) {
    const auto written = Await<std::int64_t>([&](auto done) { store_->Append(entry, done); });
    EXPECT_TRUE(written.ok());
  }

  /// Waits for an answer.
  template <typename T, typename Call>
  static Result<T> Await(Call call) {
    std::promise<Result<T>> promise;
    call([&promise](Result<T> result) { promise.set_value(std::move(result)); });
    return promise.get_future().get();
  }

 private:
  Catalog catalog_{CompileOptions{.default_policy = DefaultPolicy(),
                                  .stores = std::vector<std::string>{"main"}}};
  std::unique_ptr<weir::sqlite::Database> database_;
  std::unique_ptr<PolicyStore> store_;
};

/// A node on an empty store of the kind that the test is run for.
class PolicyTest : public ::testing::TestWithParam<std::string> {
 protected:
  PolicyTest() : place_(GetParam()), node_(std::make_unique<PolicyNode>(place_)) {}
  PolicyPlace place_;
  std::unique_ptr<PolicyNode> node_;
};

inline std::string KindName(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace weir::policy
