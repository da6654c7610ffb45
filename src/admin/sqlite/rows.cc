#include "admin/sqlite/rows.h"

#include <array>
#include <string>
#include <unordered_map>
#include <utility>

#include "admin/policy_row.h"

namespace weir::policy::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

constexpr std::array<const char*, 2> kSteps = {
    R"(
CREATE TABLE policy (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  policy_key     TEXT    NOT NULL UNIQUE,
  type           TEXT    NOT NULL,
  capacity       INTEGER NOT NULL,
  refill_rate    INTEGER NOT NULL,
  window_seconds INTEGER NOT NULL,
  buckets        INTEGER NOT NULL,
  domain         TEXT    NOT NULL,
  has_match      INTEGER NOT NULL,
  shadow         INTEGER NOT NULL,
  unlimited      INTEGER NOT NULL,
  on_store_error TEXT    NOT NULL,
  cost           INTEGER NOT NULL,
  version        INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL
);
CREATE TABLE policy_match (
  policy_id INTEGER NOT NULL REFERENCES policy (id) ON DELETE CASCADE,
  position  INTEGER NOT NULL,
  name      TEXT    NOT NULL,
  value     TEXT    NOT NULL,
  PRIMARY KEY (policy_id, position)
) WITHOUT ROWID;
CREATE TABLE policy_version (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  policy_key TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  who        TEXT    NOT NULL,
  action     TEXT    NOT NULL,
  before     TEXT    NOT NULL,
  after      TEXT    NOT NULL
);
CREATE INDEX policy_version_key ON policy_version (policy_key, id);
)",
    "ALTER TABLE policy ADD COLUMN expires_at INTEGER NOT NULL DEFAULT 0"};

Status WriteMatch(Connection& connection, const StoredPolicy& policy) {
  Result<Statement> clear = connection.Prepare("DELETE FROM policy_match WHERE policy_id = ?1");
  if (!clear.ok()) return clear.error();
  if (Status done = clear->Bind(1, policy.id).Run(); !done.ok()) return done;
  Result<Statement> insert = connection.Prepare(
      "INSERT INTO policy_match (policy_id, position, name, value) VALUES (?1, ?2, ?3, ?4)");
  if (!insert.ok()) return insert.error();
  for (std::size_t i = 0; i < policy.match.size(); ++i) {
    insert->Bind(1, policy.id).Bind(2, static_cast<std::int64_t>(i));
    insert->Bind(3, policy.match[i].name).Bind(4, MatchText(policy.match[i]));
    if (Status done = insert->Run(); !done.ok()) return done;
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
  Result<Statement> query = connection.Prepare(
      "SELECT policy_id, name, value FROM policy_match ORDER BY policy_id, position");
  if (!query.ok()) return query.error();
  for (;;) {
    Result<bool> row = query->Step();
    if (!row.ok()) return row.error();
    if (!*row) return {};
    const auto found = by_id.find(query->Int(0));
    if (found == by_id.end()) continue;
    found->second->match.push_back(MakeEntryMatch(std::string(query->Text(1)), query->Text(2)));
  }
}

}  // namespace

std::span<const char* const> MigrationSteps() { return kSteps; }

Result<std::vector<StoredPolicy>> ReadPolicies(Connection& connection) {
  std::vector<StoredPolicy> policies;
  Result<Statement> query = connection.Prepare(
      "SELECT id, policy_key, type, capacity, refill_rate, window_seconds, buckets, domain,"
      " has_match, shadow, unlimited, on_store_error, cost, version, created_at, updated_at,"
      " expires_at FROM policy ORDER BY policy_key");
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
  Result<Statement> insert = connection.Prepare(
      "INSERT INTO policy (policy_key, type, capacity, refill_rate, window_seconds, buckets, "
      "domain,"
      " has_match, shadow, unlimited, on_store_error, cost, version, created_at, updated_at,"
      " expires_at, id)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
      " NULLIF(?17, 0))");
  if (!insert.ok()) return insert.error();
  insert->Bind(1, policy.key);
  BindColumns(*insert, policy);
  insert->Bind(17, policy.id);
  if (Status done = insert->Run(); !done.ok()) return done;
  policy.id = connection.last_insert_rowid();
  return WriteMatch(connection, policy);
}

Status UpdatePolicy(Connection& connection, const StoredPolicy& policy) {
  Result<Statement> update = connection.Prepare(
      "UPDATE policy SET type = ?2, capacity = ?3, refill_rate = ?4, window_seconds = ?5,"
      " buckets = ?6, domain = ?7, has_match = ?8, shadow = ?9, unlimited = ?10,"
      " on_store_error = ?11, cost = ?12, version = ?13, created_at = ?14, updated_at = ?15,"
      " expires_at = ?16 WHERE id = ?1");
  if (!update.ok()) return update.error();
  update->Bind(1, policy.id);
  BindColumns(*update, policy);
  if (Status done = update->Run(); !done.ok()) return done;
  return WriteMatch(connection, policy);
}

Status DeletePolicy(Connection& connection, std::int64_t id) {
  Result<Statement> statement = connection.Prepare("DELETE FROM policy WHERE id = ?1");
  if (!statement.ok()) return statement.error();
  return statement->Bind(1, id).Run();
}

Status AppendVersion(Connection& connection, const PolicyChange& change) {
  Result<Statement> insert = connection.Prepare(
      "INSERT INTO policy_version (policy_key, at, who, action, before, after)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
  if (!insert.ok()) return insert.error();
  insert->Bind(1, change.key).Bind(2, change.at).Bind(3, change.who).Bind(4, change.action);
  if (Status done = insert->Bind(5, change.before).Bind(6, change.after).Run(); !done.ok()) {
    return done;
  }
  Result<Statement> trim = connection.Prepare(
      "DELETE FROM policy_version WHERE policy_key = ?1 AND id <= (SELECT id FROM policy_version"
      " WHERE policy_key = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)");
  if (!trim.ok()) return trim.error();
  return trim->Bind(1, change.key).Bind(2, static_cast<std::int64_t>(kMaxVersions)).Run();
}

Result<std::vector<PolicyChange>> ReadVersions(Connection& connection, std::string_view key,
                                               std::size_t limit) {
  std::vector<PolicyChange> changes;
  Result<Statement> query = connection.Prepare(
      key.empty() ? "SELECT id, policy_key, at, who, action, before, after FROM policy_version"
                    " ORDER BY id DESC LIMIT ?1"
                  : "SELECT id, policy_key, at, who, action, before, after FROM policy_version"
                    " WHERE policy_key = ?2 ORDER BY id DESC LIMIT ?1");
  if (!query.ok()) return query.error();
  query->Bind(1, static_cast<std::int64_t>(limit));
  if (!key.empty()) query->Bind(2, key);
  for (;;) {
    Result<bool> row = query->Step();
    if (!row.ok()) return row.error();
    if (!*row) return changes;
    changes.push_back({query->Int(0), std::string(query->Text(1)), query->Int(2),
                       std::string(query->Text(3)), std::string(query->Text(4)),
                       std::string(query->Text(5)), std::string(query->Text(6))});
  }
}

}  // namespace weir::policy::sqlite
