#include "admin/sqlite/sqlite_policy_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "admin/sqlite/audit_rows.h"
#include "admin/sqlite/rows.h"
#include "admin/sqlite/sql.h"
#include "drivers/sqlite/valued.h"

namespace weir::policy::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::ReadFor;
using weir::sqlite::WriteFor;

/// The state of a key according to the tables and the latest policies.
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
  if (Status noted = AppendVersion(connection, ChangeOf(entry)); !noted.ok()) return noted;
  return InsertEntry(connection, entry);
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
  // latest_ counts only if the job and its savepoint succeed; otherwise it is read again.
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
    // Whether the job or the commit failed, the disk decides what is in force. Refusals changed
    // nothing, and a client that repeats them must not cause a read each time.
    const Code code = committed.error().code;
    if (code != Code::kAlreadyExists && code != Code::kNotFound &&
        code != Code::kFailedPrecondition && code != Code::kInvalidArgument) {
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
  std::int64_t count = 0;
  static_cast<void>(database.Read([&](Connection& connection) -> Status {
    const Result<std::int64_t> found = connection.ReadNumber(kCountPolicies);
    if (!found.ok()) return found.error();
    count = *found;
    return {};
  }));
  return static_cast<std::size_t>(count);
}

void SqlitePolicyStore::History(std::string key, std::size_t limit, HistoryDone done) {
  limit = std::clamp<std::size_t>(limit, 1, kMaxPage);
  ReadFor(database_, std::move(done), ReadVersions, std::move(key), limit);
}

void SqlitePolicyStore::ListEntries(AuditQuery query, Listed done) {
  // One more than a page shows whether there is a next one.
  query.limit = std::clamp<std::size_t>(query.limit, 1, kMaxPage + 1);
  ReadFor(database_, std::move(done), ReadEntries, std::move(query));
}

void SqlitePolicyStore::FindEntry(std::int64_t id, Found done) {
  ReadFor(database_, std::move(done), ReadEntry, id);
}

void SqlitePolicyStore::Trim(std::size_t keep, Nanos since, std::size_t most, Trimmed done) {
  WriteFor(database_, std::move(done), TrimEntries, keep, since, most);
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
