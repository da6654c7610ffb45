#include "server/api/audit_log.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/instant.h"
#include "config/config.h"
#include "protocol/http/error.h"
#include "server/api/admin_guard.h"

namespace weir::server {
namespace {

using sqlite::Connection;
using sqlite::Statement;

constexpr std::array<const char*, 1> kSteps = {R"(
CREATE TABLE audit (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  at     INTEGER NOT NULL,
  who    TEXT    NOT NULL,
  action TEXT    NOT NULL,
  target TEXT    NOT NULL,
  before TEXT    NOT NULL,
  after  TEXT    NOT NULL,
  undoes INTEGER NOT NULL
);
CREATE INDEX audit_target ON audit (target, id);
)"};

constexpr std::size_t kMaxPage = 1000;

AuditEntry FromRow(const Statement& row) {
  return {row.Int(0),
          row.Int(1),
          std::string(row.Text(2)),
          std::string(row.Text(3)),
          std::string(row.Text(4)),
          std::string(row.Text(5)),
          std::string(row.Text(6)),
          row.Int(7)};
}

Status Insert(Connection& connection, AuditEntry& entry) {
  Result<Statement> insert = connection.Prepare(
      "INSERT INTO audit (at, who, action, target, before, after, undoes)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
  if (!insert.ok()) return insert.error();
  insert->Bind(1, entry.at).Bind(2, entry.who).Bind(3, entry.action).Bind(4, entry.target);
  insert->Bind(5, entry.before).Bind(6, entry.after).Bind(7, entry.undoes);
  if (Status done = insert->Run(); !done.ok()) return done;
  entry.id = connection.last_insert_rowid();
  return {};
}

Result<std::vector<AuditEntry>> Select(sqlite::Database& database, const char* condition,
                                       std::int64_t id, std::size_t limit) {
  std::vector<AuditEntry> entries;
  Status read = database.Read([&](Connection& connection) -> Status {
    Result<Statement> query = connection.Prepare(
        std::string("SELECT id, at, who, action, target, before, after, undoes FROM audit WHERE ") +
        condition + " ORDER BY id DESC LIMIT ?2");
    if (!query.ok()) return query.error();
    query->Bind(1, id).Bind(2, static_cast<std::int64_t>(limit));
    for (;;) {
      Result<bool> row = query->Step();
      if (!row.ok()) return row.error();
      if (!*row) return {};
      entries.push_back(FromRow(*query));
    }
  });
  if (!read.ok()) return read.error();
  return entries;
}

void AppendState(std::string& out, std::string_view name, const std::string& json) {
  out.append(",\"").append(name).append("\":").append(json.empty() ? "null" : json);
}

}  // namespace

std::string WhoAsks(const http::Request& request) {
  constexpr char kHex[] = "0123456789abcdef";
  constexpr std::size_t kBytes = 4;
  const std::string_view key = ApiKeyOf(request);
  if (key.empty()) return std::string(request.remote);
  const config::Digest digest = config::Sha256(key);
  std::string who = "key ";
  for (std::size_t i = 0; i < kBytes; ++i) who += {kHex[digest[i] >> 4U], kHex[digest[i] & 15U]};
  return who.append(" from ").append(request.remote);
}

void AppendJson(std::string& out, const AuditEntry& entry) {
  out.append("{\"id\":").append(std::to_string(entry.id));
  out.append(",\"at\":\"").append(FormatInstant(entry.at)).append("\",\"who\":");
  http::AppendJsonString(out, entry.who);
  out += ",\"action\":";
  http::AppendJsonString(out, entry.action);
  out += ",\"target\":";
  http::AppendJsonString(out, entry.target);
  AppendState(out, "before", entry.before);
  AppendState(out, "after", entry.after);
  if (entry.undoes != 0) out.append(",\"undoes\":").append(std::to_string(entry.undoes));
  out += '}';
}

Result<std::unique_ptr<AuditLog>> AuditLog::Open(sqlite::Database& database) {
  if (Status made = database.Migrate("audit", kSteps); !made.ok()) return made.error();
  return std::unique_ptr<AuditLog>(new AuditLog(database));
}

void AuditLog::Append(AuditEntry entry, Done done) {
  if (entry.at == 0) entry.at = SystemClock::Get().Now();
  auto kept = std::make_shared<AuditEntry>(std::move(entry));
  database_.Write([kept](Connection& connection) { return Insert(connection, *kept); },
                  [kept, done = std::move(done)](const Status& written) {
                    if (!written.ok()) return done(written.error());
                    done(kept->id);
                  });
}

Result<std::vector<AuditEntry>> AuditLog::List(std::int64_t before, std::size_t limit) {
  limit = std::clamp<std::size_t>(limit, 1, kMaxPage);
  return Select(database_, before == 0 ? "id > ?1" : "id < ?1", before, limit);
}

Result<AuditEntry> AuditLog::Get(std::int64_t id) {
  Result<std::vector<AuditEntry>> found = Select(database_, "id = ?1", id, 1);
  if (!found.ok()) return found.error();
  if (found->empty()) {
    return Error{Code::kNotFound, "no change with id " + std::to_string(id)};
  }
  return std::move(found->front());
}

Result<std::int64_t> AuditLog::LatestOf(std::string_view target) {
  std::int64_t latest = 0;
  Status read = database_.Read([&](Connection& connection) -> Status {
    Result<Statement> query = connection.Prepare("SELECT MAX(id) FROM audit WHERE target = ?1");
    if (!query.ok()) return query.error();
    query->Bind(1, target);
    Result<bool> row = query->Step();
    if (!row.ok()) return row.error();
    if (*row) latest = query->Int(0);
    return {};
  });
  if (!read.ok()) return read.error();
  return latest;
}

}  // namespace weir::server
