#include "admin/sqlite/rows.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "admin/policy_row.h"
#include "admin/sqlite/sql.h"

namespace weir::policy::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

Status WriteMatch(Connection& connection, const StoredPolicy& policy) {
  if (Status done = connection.Run(kDeleteMatches, policy.id); !done.ok()) return done;
  for (std::size_t i = 0; i < policy.match.size(); ++i) {
    Status done = connection.Run(kInsertMatch, policy.id, i, policy.match[i].name,
                                 MatchText(policy.match[i]));
    if (!done.ok()) return done;
  }
  return {};
}

// The columns from type to expires_at, in the order of the table.
void BindColumns(Statement& statement, const StoredPolicy& policy) {
  statement.Bind(2, PolicyTypeName(policy.type))
      .Bind(3, policy.capacity)
      .Bind(4, policy.refill_rate)
      .Bind(5, policy.window_seconds)
      .Bind(6, policy.buckets)
      .Bind(7, policy.domain)
      .Bind(8, std::int64_t{policy.has_match})
      .Bind(9, std::int64_t{policy.shadow})
      .Bind(10, std::int64_t{policy.unlimited})
      .Bind(11, BehaviourWords(policy))
      .Bind(12, policy.cost)
      .Bind(13, policy.version)
      .Bind(14, policy.created_at)
      .Bind(15, policy.updated_at)
      .Bind(16, policy.expires_at);
}

Status ReadMatches(Connection& connection, std::vector<StoredPolicy>& policies) {
  std::unordered_map<std::int64_t, StoredPolicy*> by_id;
  for (StoredPolicy& policy : policies) by_id.emplace(policy.id, &policy);
  Result<Statement> query = connection.Prepare(kReadMatches);
  if (!query.ok()) return query.error();
  return query->ForEach([&](const Statement& row) {
    const auto found = by_id.find(row.Int(0));
    if (found == by_id.end()) return;
    found->second->match.push_back(MakeEntryMatch(std::string(row.Text(1)), row.Text(2)));
  });
}

}  // namespace

std::span<const char* const> MigrationSteps() {
  static const char* const steps[] = {kPolicies1, kPolicies2};
  return steps;
}

Result<std::vector<StoredPolicy>> ReadPolicies(Connection& connection) {
  std::vector<StoredPolicy> policies;
  Result<Statement> query = connection.Prepare(kReadPolicies);
  if (!query.ok()) return query.error();
  for (;;) {
    Result<bool> row = query->Step();
    if (!row.ok()) return row.error();
    if (!*row) break;
    Result<StoredPolicy> policy = ReadPolicy(*query, 0);
    if (!policy.ok()) return policy.error();
    policies.push_back(std::move(*policy));
  }
  if (Status read = ReadMatches(connection, policies); !read.ok()) return read.error();
  return policies;
}

Status InsertPolicy(Connection& connection, StoredPolicy& policy) {
  Result<Statement> insert = connection.Prepare(kInsertPolicy);
  if (!insert.ok()) return insert.error();
  insert->Bind(1, policy.key);
  BindColumns(*insert, policy);
  insert->Bind(17, policy.id);
  if (Status done = insert->Run(); !done.ok()) return done;
  policy.id = connection.last_insert_rowid();
  return WriteMatch(connection, policy);
}

Status UpdatePolicy(Connection& connection, const StoredPolicy& policy) {
  Result<Statement> update = connection.Prepare(kUpdatePolicy);
  if (!update.ok()) return update.error();
  update->Bind(1, policy.id);
  BindColumns(*update, policy);
  if (Status done = update->Run(); !done.ok()) return done;
  return WriteMatch(connection, policy);
}

Status DeletePolicy(Connection& connection, std::int64_t id) {
  return connection.Run(kDeletePolicy, id);
}

Status AppendVersion(Connection& connection, const PolicyChange& change) {
  Status done = connection.Run(kAppendVersion, change.key, change.at, change.who, change.action,
                               change.before, change.after);
  if (!done.ok()) return done;
  return connection.Run(kTrimVersions, change.key, kMaxVersions);
}

Result<std::vector<PolicyChange>> ReadVersions(Connection& connection, std::string_view key,
                                               std::size_t limit) {
  const auto read = [](const Statement& row) {
    return PolicyChange{row.Int(0),
                        std::string(row.Text(1)),
                        row.Int(2),
                        std::string(row.Text(3)),
                        std::string(row.Text(4)),
                        std::string(row.Text(5)),
                        std::string(row.Text(6))};
  };
  if (key.empty()) return connection.ReadAll(kReadVersions, read, limit);
  return connection.ReadAll(kReadVersionsOf, read, limit, key);
}

}  // namespace weir::policy::sqlite
