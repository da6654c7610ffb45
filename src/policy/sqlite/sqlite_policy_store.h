#pragma once

// Policies in the embedded database. Every change is made on the database's one writer thread, so
// changes follow each other without locks: a job changes `latest_` and the tables, and once the
// commit is on disk the done of the first job of the group puts all of the group's changes in
// force.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/sqlite/database.h"
#include "policy/catalog.h"
#include "policy/policy_store.h"

namespace weir::policy::sqlite {

/// PolicyStore on weir::sqlite::Database.
///
/// Thread-safe. The database must be closed before this is destroyed, or have no jobs left.
class SqlitePolicyStore final : public PolicyStore {
 public:
  /// Makes the tables, reads all policies and puts them in force through the catalog. Both
  /// arguments must outlive the store.
  static Result<std::unique_ptr<SqlitePolicyStore>> Open(weir::sqlite::Database& database,
                                                         Catalog& catalog);
  ~SqlitePolicyStore() override;

  void Create(StoredPolicy policy, std::string who, Done done) override;
  void Update(StoredPolicy policy, std::string who, Done done) override;
  void Delete(std::string key, std::string who, Done done) override;
  Result<StoredPolicy> Get(std::string_view key) const override;
  Page List(std::string_view after, std::size_t limit) const override;
  Result<std::vector<PolicyChange>> History(std::string_view key, std::size_t limit) override;

 private:
  using Map = std::map<std::string, StoredPolicy, std::less<>>;

  // What a change needs on its way through the writer. Shared by its job and its done.
  struct Change {
    StoredPolicy policy;
    std::string who;
    Done done;
  };
  using ChangeJob = Status (SqlitePolicyStore::*)(weir::sqlite::Connection&, Change&);

  SqlitePolicyStore(weir::sqlite::Database& database, Catalog& catalog)
      : database_(database), catalog_(catalog) {}
  void Submit(std::shared_ptr<Change> change, ChangeJob job);
  Status RunCreate(weir::sqlite::Connection& connection, Change& change);
  Status RunUpdate(weir::sqlite::Connection& connection, Change& change);
  Status RunDelete(weir::sqlite::Connection& connection, Change& change);
  void Finish(const Status& committed, Change& change);
  Status PutInForce();
  Status ReloadLatest(weir::sqlite::Connection& connection);

  weir::sqlite::Database& database_;
  Catalog& catalog_;

  // The writer thread's: with the changes that are not committed yet.
  Map latest_;
  bool latest_in_force_ = true;
  bool latest_unsure_ = false;  // a commit failed: read it again

  mutable std::mutex mutex_;
  Map in_force_;
};

}  // namespace weir::policy::sqlite
