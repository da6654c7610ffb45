#include "policy/sqlite/sqlite_policy_store.h"

#include <algorithm>
#include <utility>

#include "policy/sqlite/rows.h"

namespace weir::policy::sqlite {
namespace {

using weir::sqlite::Connection;

constexpr std::size_t kMaxPage = 1000;

Error NotFound(std::string_view key) {
  return Error{Code::kNotFound, "no policy with key '" + std::string(key) + "'"};
}

PolicyChange ChangeOf(const std::string& key, Nanos at, const std::string& who, const char* action,
                      const StoredPolicy* before, const StoredPolicy* after) {
  return {0,
          key,
          at,
          who,
          action,
          before == nullptr ? "" : ToJson(*before),
          after == nullptr ? "" : ToJson(*after)};
}

}  // namespace

Result<std::unique_ptr<SqlitePolicyStore>> SqlitePolicyStore::Open(weir::sqlite::Database& database,
                                                                   Catalog& catalog) {
  if (Status made = database.Migrate("policy", MigrationSteps()); !made.ok()) return made.error();
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
  std::vector<Definition> definitions;
  definitions.reserve(latest_.size());
  for (const auto& [key, policy] : latest_) {
    Result<Definition> definition = ToDefinition(policy);
    if (!definition.ok()) {
      return Error{Code::kInternal,
                   "the stored policy '" + key + "' is damaged: " + definition.error().message};
    }
    definitions.push_back(std::move(*definition));
  }
  if (Status set = catalog_.SetStored(std::move(definitions)); !set.ok()) return set;
  const std::lock_guard lock(mutex_);
  in_force_ = latest_;
  latest_in_force_ = true;
  return {};
}

void SqlitePolicyStore::Create(StoredPolicy policy, std::string who, Done done) {
  Result<Definition> definition = ToDefinition(policy);
  if (!definition.ok()) return done(definition.error());
  if (Status free = catalog_.CheckFree(*definition); !free.ok()) return done(free.error());
  Submit(std::make_shared<Change>(Change{std::move(policy), std::move(who), std::move(done)}),
         &SqlitePolicyStore::RunCreate);
}

void SqlitePolicyStore::Update(StoredPolicy policy, std::string who, Done done) {
  Result<Definition> definition = ToDefinition(policy);
  if (!definition.ok()) return done(definition.error());
  Submit(std::make_shared<Change>(Change{std::move(policy), std::move(who), std::move(done)}),
         &SqlitePolicyStore::RunUpdate);
}

void SqlitePolicyStore::Delete(std::string key, std::string who, Done done) {
  StoredPolicy policy;
  policy.key = std::move(key);
  Submit(std::make_shared<Change>(Change{std::move(policy), std::move(who), std::move(done)}),
         &SqlitePolicyStore::RunDelete);
}

void SqlitePolicyStore::Submit(std::shared_ptr<Change> change, ChangeJob job) {
  database_.Write(
      [this, change, job](Connection& connection) -> Status {
        if (latest_unsure_) {
          if (Status read = ReloadLatest(connection); !read.ok()) return read;
        }
        // What the job leaves in latest_ counts only if the job and its savepoint succeed.
        Status ran = (this->*job)(connection, *change);
        if (ran.ok()) latest_in_force_ = false;
        return ran;
      },
      [this, change](const Status& committed) { Finish(committed, *change); });
}

Status SqlitePolicyStore::RunCreate(Connection& connection, Change& change) {
  StoredPolicy& policy = change.policy;
  if (latest_.contains(policy.key)) {
    return Error{Code::kAlreadyExists, "a policy with key '" + policy.key + "' exists already"};
  }
  if (latest_.size() >= kMaxPolicies) {
    return Error{Code::kResourceExhausted,
                 "there are " + std::to_string(kMaxPolicies) + " policies already"};
  }
  Result<std::vector<PolicyChange>> last = ReadVersions(connection, policy.key, 1);
  if (!last.ok()) return last.error();
  policy.version = last->empty() ? 1 : VersionAfter(last->front());
  policy.created_at = SystemClock::Get().Now();
  policy.updated_at = policy.created_at;
  if (Status done = InsertPolicy(connection, policy); !done.ok()) return done;
  Status noted = AppendVersion(
      connection, ChangeOf(policy.key, policy.updated_at, change.who, "create", nullptr, &policy));
  if (noted.ok()) latest_.emplace(policy.key, policy);
  return noted;
}

Status SqlitePolicyStore::RunUpdate(Connection& connection, Change& change) {
  StoredPolicy& policy = change.policy;
  const auto found = latest_.find(policy.key);
  if (found == latest_.end()) return NotFound(policy.key);
  policy.id = found->second.id;
  policy.version = found->second.version + 1;
  policy.created_at = found->second.created_at;
  policy.updated_at = SystemClock::Get().Now();
  if (Status done = UpdatePolicy(connection, policy); !done.ok()) return done;
  Status noted = AppendVersion(connection, ChangeOf(policy.key, policy.updated_at, change.who,
                                                    "update", &found->second, &policy));
  if (noted.ok()) found->second = policy;
  return noted;
}

Status SqlitePolicyStore::RunDelete(Connection& connection, Change& change) {
  const auto found = latest_.find(change.policy.key);
  if (found == latest_.end()) return NotFound(change.policy.key);
  change.policy = found->second;
  if (Status done = DeletePolicy(connection, change.policy.id); !done.ok()) return done;
  Status noted = AppendVersion(connection, ChangeOf(change.policy.key, SystemClock::Get().Now(),
                                                    change.who, "delete", &change.policy, nullptr));
  if (noted.ok()) latest_.erase(found);
  return noted;
}

void SqlitePolicyStore::Finish(const Status& committed, Change& change) {
  if (!committed.ok()) {
    // Whether the job or the commit failed, what is on disk is what counts from now on. Refusals
    // changed nothing, and reading again for each of them would be a gift to whoever repeats them.
    const Code code = committed.error().code;
    if (code != Code::kAlreadyExists && code != Code::kNotFound) latest_unsure_ = true;
    change.done(committed.error());
    return;
  }
  if (latest_unsure_) {
    Status read = database_.Read([this](Connection& c) { return ReloadLatest(c); });
    if (!read.ok()) return change.done(read.error());
  }
  if (!latest_in_force_) {
    if (Status put = PutInForce(); !put.ok()) {
      change.done(put.error());
      return;
    }
  }
  change.done(std::move(change.policy));
}

Result<StoredPolicy> SqlitePolicyStore::Get(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const auto found = in_force_.find(key);
  if (found == in_force_.end()) return NotFound(key);
  return found->second;
}

PolicyStore::Page SqlitePolicyStore::List(std::string_view after, std::size_t limit) const {
  limit = std::clamp<std::size_t>(limit, 1, kMaxPage);
  Page page;
  const std::lock_guard lock(mutex_);
  page.total = in_force_.size();
  auto at = after.empty() ? in_force_.begin() : in_force_.upper_bound(after);
  for (; at != in_force_.end() && page.policies.size() < limit; ++at) {
    page.policies.push_back(at->second);
  }
  if (at != in_force_.end()) page.next = page.policies.back().key;
  return page;
}

Result<std::vector<PolicyChange>> SqlitePolicyStore::History(std::string_view key,
                                                             std::size_t limit) {
  Result<std::vector<PolicyChange>> changes(std::vector<PolicyChange>{});
  Status read = database_.Read([&](Connection& connection) -> Status {
    changes = ReadVersions(connection, key, std::clamp<std::size_t>(limit, 1, kMaxPage));
    if (!changes.ok()) return changes.error();
    return {};
  });
  if (!read.ok()) return read.error();
  return changes;
}

}  // namespace weir::policy::sqlite
