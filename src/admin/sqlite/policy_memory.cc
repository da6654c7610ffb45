#include "admin/sqlite/policy_memory.h"

#include <vector>

#include "admin/sqlite/rows.h"
#include "admin/sqlite/sql.h"
#include "drivers/sqlite/migration.h"

namespace weir::policy::sqlite {

using weir::sqlite::Connection;

Result<std::unique_ptr<PolicyMemory>> PolicyMemory::Open(const std::string& path,
                                                         std::string source) {
  auto connection = Connection::Open({.path = path});
  if (!connection.ok()) return connection.error();
  Status made = weir::sqlite::Migrate(**connection, "policy", MigrationSteps());
  if (made.ok()) made = weir::sqlite::Migrate(**connection, "source", {&kSource1, 1});
  if (!made.ok()) return made.error();
  return std::unique_ptr<PolicyMemory>(new PolicyMemory(std::move(*connection), std::move(source)));
}

Result<PolicyMap> PolicyMemory::Load() {
  const Result<std::int64_t> known = connection_->ReadNumber(kFindSource, source_);
  if (!known.ok()) return known.error();
  if (*known == 0) return Error{Code::kNotFound, "no saved policies of this database"};
  Result<std::vector<StoredPolicy>> all = ReadPolicies(*connection_);
  if (!all.ok()) return all.error();
  PolicyMap policies;
  for (StoredPolicy& policy : *all) {
    std::string key = policy.key;
    policies.emplace(std::move(key), std::move(policy));
  }
  return policies;
}

Status PolicyMemory::Save(const PolicyMap& policies) {
  if (Status begun = connection_->Execute("BEGIN IMMEDIATE"); !begun.ok()) return begun;
  Status written = Write(policies);
  if (written.ok()) written = connection_->Execute("COMMIT");
  if (!written.ok()) (void)connection_->Execute("ROLLBACK");
  return written;
}

Status PolicyMemory::Write(const PolicyMap& policies) {
  if (Status gone = connection_->Execute(kForgetAll); !gone.ok()) {
    return gone;
  }
  for (const auto& [key, policy] : policies) {
    StoredPolicy copy = policy;
    if (Status done = InsertPolicy(*connection_, copy); !done.ok()) return done;
  }
  return connection_->Run(kInsertSource, source_);
}

}  // namespace weir::policy::sqlite
