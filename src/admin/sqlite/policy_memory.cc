#include "admin/sqlite/policy_memory.h"

#include <string>
#include <vector>

#include "admin/sqlite/rows.h"
#include "admin/sqlite/sql.h"
#include "drivers/sqlite/migration.h"

namespace weir::policy::sqlite {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

namespace {
constexpr const char* kSourceSteps[] = {kSource1, kSource2};
}  // namespace

Result<std::unique_ptr<PolicyMemory>> PolicyMemory::Open(const std::string& path,
                                                         std::string source) {
  auto connection = Connection::Open({.path = path});
  if (!connection.ok()) return connection.error();
  Status made = weir::sqlite::Migrate(**connection, "policy", MigrationSteps());
  if (made.ok()) made = weir::sqlite::Migrate(**connection, "source", kSourceSteps);
  if (!made.ok()) return made.error();
  return std::unique_ptr<PolicyMemory>(new PolicyMemory(std::move(*connection), std::move(source)));
}

Result<PolicyMemory::Known> PolicyMemory::Load() {
  const auto mark = connection_->ReadFirst(
      kFindSource, [](const Statement& row) { return std::string(row.Text(0)); }, source_);
  if (!mark.ok()) return mark.error();
  if (!*mark) return Error{Code::kNotFound, "no saved policies of this database"};
  Result<std::vector<StoredPolicy>> all = ReadPolicies(*connection_);
  if (!all.ok()) return all.error();
  Known known{.mark = **mark};
  for (StoredPolicy& policy : *all) {
    std::string key = policy.key;
    known.policies.emplace(std::move(key), std::move(policy));
  }
  return known;
}

Status PolicyMemory::Save(const PolicyMap& policies, const std::string& mark) {
  if (Status begun = connection_->Execute("BEGIN IMMEDIATE"); !begun.ok()) return begun;
  Status written = Write(policies, mark);
  if (written.ok()) written = connection_->Execute("COMMIT");
  if (!written.ok()) (void)connection_->Execute("ROLLBACK");
  return written;
}

Status PolicyMemory::Write(const PolicyMap& policies, const std::string& mark) {
  if (Status gone = connection_->Execute(kForgetAll); !gone.ok()) {
    return gone;
  }
  for (const auto& [key, policy] : policies) {
    StoredPolicy copy = policy;
    if (Status done = InsertPolicy(*connection_, copy); !done.ok()) return done;
  }
  return connection_->Run(kInsertSource, source_, mark);
}

}  // namespace weir::policy::sqlite
