#pragma once

// Policies in the embedded database. Every change is made on the database's one writer thread, so
// changes follow each other without locks: a job changes `latest_` and the tables, and once the
// commit is on disk, the callback of the first job of the group puts all of the group's changes in
// force.

#include <cstdint>
#include <memory>
#include <string>

#include "admin/in_force.h"
#include "admin/policy_edit.h"
#include "admin/policy_store.h"
#include "drivers/sqlite/database.h"
#include "policy/catalog.h"

namespace weir::policy::sqlite {

/// PolicyStore on weir::sqlite::Database.
///
/// Thread-safe. The database must be closed before this is destroyed, or have no jobs left.
class SqlitePolicyStore final : public StoreInForce {
 public:
  /// Creates the tables, reads all policies and puts them in force through the catalog. Both
  /// arguments must outlive the store.
  static Result<std::unique_ptr<SqlitePolicyStore>> Open(weir::sqlite::Database& database,
                                                         Catalog& catalog);
  ~SqlitePolicyStore() override;

  void Change(PolicyEdit edit, Done done) override;
  /// Runs on a thread of the database's readers, as do ListEntries and FindEntry.
  void History(std::string key, std::size_t limit, HistoryDone done) override;
  void ListEntries(AuditQuery query, Listed done) override;
  void FindEntry(std::int64_t id, Found done) override;
  void Trim(std::size_t keep, Nanos since, std::size_t most, Trimmed done) override;
  void Append(AuditEntry entry, Appended done) override;

 private:
  // The state of a change while the writer makes it. Shared by its job and its callback.
  struct Pending {
    PolicyEdit edit;
    Done done;
    PolicyStep step = {};
  };

  SqlitePolicyStore(weir::sqlite::Database& database, Catalog& catalog)
      : StoreInForce(catalog), database_(database), catalog_(catalog) {}
  Status Run(weir::sqlite::Connection& connection, Pending& pending);
  void Finish(const Status& committed, Pending& pending);
  Status PutInForce();
  Status ReloadLatest(weir::sqlite::Connection& connection);

  weir::sqlite::Database& database_;
  Catalog& catalog_;

  // Used on the writer thread; includes changes that are not committed yet.
  PolicyMap latest_;
  bool latest_in_force_ = true;
  bool latest_unsure_ = false;  // a commit failed: read it again
};

/// How many policies the file has; also 0 if it never had any. For a node that keeps them
/// elsewhere.
std::size_t CountPolicies(weir::sqlite::Database& database);

}  // namespace weir::policy::sqlite
