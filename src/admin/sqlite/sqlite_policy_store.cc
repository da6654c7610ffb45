#include "admin/sqlite/sqlite_policy_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "admin/sqlite/audit_rows.h"
#include "admin/sqlite/rows.h"
#include "admin/sqlite/sql.h"

namespace weir::policy::sqlite {
namespace {

using weir::sqlite::Connection;

/// What the tables and the latest policies know of a key.
Result<PolicyState> ReadState(Connection& connection, const PolicyMap& latest,
                              const std::string& key) {
  PolicyState state{.policies = latest.size()};
  const auto found = latest.find(key);
  if (found != latest.end()) state.now = found->second;
  Result<std::vector<PolicyChange>> last = ReadVersions(connection, key, 1);
  if (!last.ok()) return last.error();
  if (!last->empty()) state.new_version = VersionAfter(last->front());
  Result<std::int64_t> entry = LatestEntryOf(connection, std::string(kPolicyTarget) + key);
  if (!entry.ok()) return entry.error();
  state.last_entry = *entry;
  return state;
}

/// Writes the policy, its version and its entry of the audit log.
Status WriteStep(Connection& connection, const PolicyEdit& edit, PolicyStep& step, Nanos at) {
  Status written = !step.after    ? DeletePolicy(connection, step.before->id)
                   : !step.before ? InsertPolicy(connection, *step.after)
                                  : UpdatePolicy(connection, *step.after);
  if (!written.ok()) return written;
  AuditEntry entry = EntryOf(edit, step, at);
  const char* action = !step.after ? "delete" : !step.before ? "create" : "update";
  if (Status noted =
          AppendVersion(connection, {0, edit.key, at, edit.who, action, entry.before, entry.after});
      !noted.ok()) {
    return noted;
  }
  return InsertEntry(connection, entry);
}

/// Reads on a thread of the database.
template <typename T, typename Read>
void ReadThen(weir::sqlite::Database& database, Read read, std::function<void(Result<T>)> done) {
  auto result = std::make_shared<Result<T>>(T{});
  database.ReadLater(
      [result, read = std::move(read)](Connection& connection) -> Status {
        *result = read(connection);
        if (!result->ok()) return result->error();
        return {};
      },
      [result, done = std::move(done)](const Status& status) {
        if (!status.ok()) return done(status.error());
        done(std::move(*result));
      });
}

/// Reads on the calling thread.
template <typename T, typename Read>
Result<T> ReadNow(weir::sqlite::Database& database, Read read) {
  Result<T> result = T{};
  Status done = database.Read([&](Connection& connection) -> Status {
    result = read(connection);
    if (!result.ok()) return result.error();
    return {};
  });
  if (!done.ok()) return done.error();
  return result;
}

}  // namespace

Result<std::unique_ptr<SqlitePolicyStore>> SqlitePolicyStore::Open(weir::sqlite::Database& database,
                                                                   Catalog& catalog) {
  if (Status made = database.Migrate("policy", MigrationSteps()); !made.ok()) return made.error();
  if (Status made = database.Migrate("audit", AuditSteps()); !made.ok()) return made.error();
  std::unique_ptr<SqlitePolicyStore> store(new SqlitePolicyStore(database, catalog));
  Status read =
      database.Read([&store](Connection& connection) { return store->ReloadLatest(connection); });
  if (!read.ok()) return read.error();
  if (Status done = store->PutInForce(); !done.ok()) return done.error();
  return store;
}

SqlitePolicyStore::~SqlitePolicyStore() = default;

Status SqlitePolicyStore::ReloadLatest(Connection& connection) {
  Result<std::vector<StoredPolicy>> all = ReadPolicies(connection);
  if (!all.ok()) return all.error();
  latest_.clear();
  for (StoredPolicy& policy : *all) latest_.emplace(policy.key, std::move(policy));
  latest_in_force_ = false;
  latest_unsure_ = false;
  return {};
}

Status SqlitePolicyStore::PutInForce() {
  Status put = in_force_.Put(latest_);
  if (put.ok()) latest_in_force_ = true;
  return put;
}

void SqlitePolicyStore::Change(PolicyEdit edit, Done done) {
  if (Status good = CheckEdit(edit); !good.ok()) return done(good.error());
  auto pending = std::make_shared<Pending>(Pending{std::move(edit), std::move(done)});
  database_.Write(
      [this, pending](Connection& connection) -> Status {
        if (latest_unsure_) {
          if (Status read = ReloadLatest(connection); !read.ok()) return read;
        }
        return Run(connection, *pending);
      },
      [this, pending](const Status& committed) { Finish(committed, *pending); });
}

Status SqlitePolicyStore::Run(Connection& connection, Pending& pending) {
  const Nanos at = SystemClock::Get().Now();
  const PolicyEdit& edit = pending.edit;
  Result<PolicyState> state = ReadState(connection, latest_, edit.key);
  if (!state.ok()) return state.error();
  Result<PolicyStep> step = Decide(edit, *state, at, catalog_);
  if (!step.ok()) return step.error();
  pending.step = std::move(*step);
  if (Status written = WriteStep(connection, edit, pending.step, at); !written.ok()) return written;
  // What is left in latest_ counts only if the job and its savepoint succeed.
  if (pending.step.after) {
    latest_.insert_or_assign(edit.key, *pending.step.after);
  } else {
    latest_.erase(edit.key);
  }
  latest_in_force_ = false;
  return {};
}

void SqlitePolicyStore::Finish(const Status& committed, Pending& pending) {
  if (!committed.ok()) {
    // Whether the job or the commit failed, what is on disk is what counts from now on. Refusals
    // changed nothing, and reading again for each of them would be a gift to whoever repeats them.
    const Code code = committed.error().code;
    if (code != Code::kAlreadyExists && code != Code::kNotFound &&
        code != Code::kFailedPrecondition) {
      latest_unsure_ = true;
    }
    return pending.done(committed.error());
  }
  if (latest_unsure_) {
    Status read = database_.Read([this](Connection& c) { return ReloadLatest(c); });
    if (!read.ok()) return pending.done(read.error());
  }
  if (!latest_in_force_) {
    if (Status put = PutInForce(); !put.ok()) return pending.done(put.error());
  }
  PolicyStep& step = pending.step;
  pending.done(std::move(step.after ? *step.after : *step.before));
}

std::size_t CountPolicies(weir::sqlite::Database& database) {
  const Result<std::size_t> count =
      ReadNow<std::size_t>(database, [](Connection& connection) -> Result<std::size_t> {
        Result<weir::sqlite::Statement> query = connection.Prepare(kCountPolicies);
        if (!query.ok()) return query.error();
        Result<bool> row = query->Step();
        if (!row.ok()) return row.error();
        return static_cast<std::size_t>(query->Int(0));
      });
  return count.ok() ? *count : 0;
}

void SqlitePolicyStore::History(std::string key, std::size_t limit, HistoryDone done) {
  limit = std::clamp<std::size_t>(limit, 1, kMaxPage);
  ReadThen<std::vector<PolicyChange>>(
      database_,
      [key = std::move(key), limit](Connection& connection) {
        return ReadVersions(connection, key, limit);
      },
      std::move(done));
}

void SqlitePolicyStore::ListEntries(std::int64_t before, std::size_t limit, Listed done) {
  // One more than a page tells whether there is a next one.
  limit = std::clamp<std::size_t>(limit, 1, kMaxPage + 1);
  ReadThen<std::vector<AuditEntry>>(
      database_,
      [before, limit](Connection& connection) { return ReadEntries(connection, before, limit); },
      std::move(done));
}

void SqlitePolicyStore::FindEntry(std::int64_t id, Found done) {
  ReadThen<AuditEntry>(
      database_, [id](Connection& connection) { return ReadEntry(connection, id); },
      std::move(done));
}

void SqlitePolicyStore::Trim(std::size_t keep, Nanos since, std::size_t most, Trimmed done) {
  auto deleted = std::make_shared<std::size_t>(0);
  database_.Write(
      [keep, since, most, deleted](Connection& connection) -> Status {
        const Result<std::size_t> trimmed = TrimEntries(connection, keep, since, most);
        if (!trimmed.ok()) return trimmed.error();
        *deleted = *trimmed;
        return {};
      },
      [deleted, done = std::move(done)](const Status& written) {
        if (!written.ok()) return done(written.error());
        done(*deleted);
      });
}

void SqlitePolicyStore::Append(AuditEntry entry, Appended done) {
  if (entry.at == 0) entry.at = SystemClock::Get().Now();
  auto kept = std::make_shared<AuditEntry>(std::move(entry));
  database_.Write([kept](Connection& connection) { return InsertEntry(connection, *kept); },
                  [kept, done = std::move(done)](const Status& written) {
                    if (!written.ok()) return done(written.error());
                    done(kept->id);
                  });
}

}  // namespace weir::policy::sqlite
