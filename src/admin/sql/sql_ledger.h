#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/shared/ledger.h"
#include "admin/sql/session.h"
#include "admin/sql/tables.h"
#include "admin/sql/trim.h"

namespace weir::policy::sql {

/// The tables of policies behind a Session.
///
/// Thread safety: see Ledger.
class SqlLedger final : public shared::Ledger {
 public:
  explicit SqlLedger(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  Status Migrate() override { return session_->Migrate(); }
  Result<std::int64_t> ReadChanges() override { return sql::ReadChanges(*session_); }
  Result<Snapshot> ReadAll() override { return sql::ReadAll(*session_); }
  Result<Made> Make(const PolicyEdit& edit, const Catalog& catalog) override {
    return sql::Make(*session_, edit, catalog);
  }
  Result<std::vector<PolicyChange>> ReadHistory(const std::string& key,
                                                std::size_t limit) override {
    return sql::ReadHistory(*session_, key, limit);
  }
  Result<std::int64_t> AppendEntry(const AuditEntry& entry) override {
    return sql::AppendEntry(*session_, entry);
  }
  Result<std::vector<AuditEntry>> ReadEntries(const AuditQuery& query) override {
    return sql::ReadEntries(*session_, query);
  }
  Result<AuditEntry> ReadEntry(std::int64_t id) override { return sql::ReadEntry(*session_, id); }
  Result<std::size_t> Trim(std::size_t keep, Nanos since, std::size_t most) override {
    return trimmer_.Trim(*session_, keep, since, most);
  }
  void Listen(std::function<void()> heard) override { session_->Listen(std::move(heard)); }
  bool listening() const noexcept override { return session_->listening(); }
  void Abort() noexcept override { session_->Abort(); }

 private:
  std::unique_ptr<Session> session_;
  Trimmer trimmer_;
};

}  // namespace weir::policy::sql
