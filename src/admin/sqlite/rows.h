#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "admin/policy_store.h"
#include "drivers/sqlite/connection.h"

namespace weir::policy::sqlite {

/// The tables, by version; see sqlite::Migrate.
std::span<const char* const> MigrationSteps();

/// Statements on the tables of policies. Each does one thing to rows and decides nothing.
Result<std::vector<StoredPolicy>> ReadPolicies(weir::sqlite::Connection& connection);
/// Sets policy.id if it is 0.
Status InsertPolicy(weir::sqlite::Connection& connection, StoredPolicy& policy);
Status UpdatePolicy(weir::sqlite::Connection& connection, const StoredPolicy& policy);
Status DeletePolicy(weir::sqlite::Connection& connection, std::int64_t id);
/// Keeps only the latest kMaxVersions of a key.
Status AppendVersion(weir::sqlite::Connection& connection, const PolicyChange& change);
Result<std::vector<PolicyChange>> ReadVersions(weir::sqlite::Connection& connection,
                                               std::string_view key, std::size_t limit);

}  // namespace weir::policy::sqlite
