#include "admin/shared/shared_policy_store.h"

#include <algorithm>

#include "admin/shared/away.h"
#include "admin/shared/older_state.h"

namespace weir::policy::shared {
namespace {

constexpr std::size_t kMaxTasks = 10'000;
constexpr std::chrono::milliseconds kSaveEvery{1000};

}  // namespace

SharedPolicyStore::SharedPolicyStore(std::unique_ptr<Ledger> ledger, Catalog& catalog,
                                     Options options)
    : StoreInForce(catalog),
      catalog_(catalog),
      options_(std::move(options)),
      ledger_(std::move(ledger)) {
  health_.known = false;
}

Result<std::unique_ptr<PolicyStore>> SharedPolicyStore::Open(std::unique_ptr<Ledger> ledger,
                                                             Catalog& catalog, Options options) {
  std::unique_ptr<SharedPolicyStore> store(
      new SharedPolicyStore(std::move(ledger), catalog, std::move(options)));
  if (Status started = store->Start(); !started.ok()) return started.error();
  return std::unique_ptr<PolicyStore>(std::move(store));
}

Status SharedPolicyStore::Start() {
  if (Status read = Refresh(); !read.ok()) {
    if (options_.required || !IsAway(read.error())) return WithAdvice(read.error());
    Report("the policy database is down", read.error().message);
    if (Status put = Remember(); !put.ok()) return put;
  }
  SaveWhenDue(/*now=*/true);
  thread_ = std::thread([this] { Work(); });
  ledger_->Listen([this] { Wake(); });
  return {};
}

Error SharedPolicyStore::WithAdvice(Error error) const {
  const bool refused =
      error.code == Code::kUnauthenticated || error.code == Code::kPermissionDenied;
  if (!IsAway(error) && !refused && !options_.migrate)
    error.message += "; create the tables with `weir migrate`";
  return error;
}

/// Puts in force what an earlier run saved.
Status SharedPolicyStore::Remember() {
  if (!options_.memory) return {};
  Result<Memory::Known> known = options_.memory->Load();
  if (!known.ok()) {
    // A missing copy is not fatal: the database will be back.
    Report(known.error().code == Code::kNotFound
               ? "no policies are known until the policy database is back"
               : "cannot read the last known policies",
           known.error().message);
    return {};
  }
  latest_ = std::move(known->policies);
  if (!latest_.empty()) ledger_->Recall(known->mark);
  Status put = in_force_.Put(latest_);
  if (put.ok()) {
    NoteKnown();
    Report("using the policies that were last read from the policy database");
  }
  unsaved_ = false;
  return put;
}

void SharedPolicyStore::Report(std::string_view what, const std::string& problem) const {
  if (options_.report) options_.report(what, problem);
}

SharedPolicyStore::~SharedPolicyStore() {
  Close();
  // Its own threads may still call Wake.
  ledger_.reset();
}

void SharedPolicyStore::Close() {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
    served_.wait_for(lock, options_.at_end, [this] { return tasks_.empty() && !serving_; });
    aborted_ = true;
  }
  if (thread_.joinable()) {
    ledger_->Abort();
    thread_.join();
  }
}

void SharedPolicyStore::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

void SharedPolicyStore::Post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_ && tasks_.size() < kMaxTasks) {
      tasks_.push_back(std::move(task));
      changed_.notify_one();
      return;
    }
  }
  task.refuse(
      {Code::kUnavailable, "too many requests are waiting for the policy database; try again"});
}

template <typename T>
void SharedPolicyStore::Submit(std::function<Result<T>()> run,
                               std::function<void(Result<T>)> done) {
  Post({[this, run = std::move(run), done] {
          Result<T> result = run();
          if (result.ok() || !IsAway(result.error())) return done(std::move(result));
          NoteHealth(result.error());
          done(Away(result.error()));
        },
        [done](const Error& error) { done(error); }});
}

void SharedPolicyStore::Change(PolicyEdit edit, Done done) {
  if (Status good = CheckEdit(edit); !good.ok()) return done(good.error());
  Post({[this, edit = std::move(edit), done] { RunChange(edit, done); },
        [done](const Error& error) { done(error); }});
}

void SharedPolicyStore::History(std::string key, std::size_t limit, HistoryDone done) {
  limit = std::clamp<std::size_t>(limit, 1, kMaxPage);
  Submit<std::vector<PolicyChange>>(
      [this, key = std::move(key), limit] { return ledger_->ReadHistory(key, limit); },
      std::move(done));
}

void SharedPolicyStore::ListEntries(AuditQuery query, Listed done) {
  // One more than a page shows whether there is a next one.
  query.limit = std::clamp<std::size_t>(query.limit, 1, kMaxPage + 1);
  Submit<std::vector<AuditEntry>>(
      [this, query = std::move(query)] { return ledger_->ReadEntries(query); }, std::move(done));
}

void SharedPolicyStore::FindEntry(std::int64_t id, Found done) {
  Submit<AuditEntry>([this, id] { return ledger_->ReadEntry(id); }, std::move(done));
}

void SharedPolicyStore::Append(AuditEntry entry, Appended done) {
  if (entry.at == 0) entry.at = SystemClock::Get().Now();
  Submit<std::int64_t>([this, entry = std::move(entry)] { return ledger_->AppendEntry(entry); },
                       std::move(done));
}

void SharedPolicyStore::Trim(std::size_t keep, Nanos since, std::size_t most, Trimmed done) {
  Submit<std::size_t>(
      [this, keep, since, most] {
        Result<std::size_t> deleted = ledger_->Trim(keep, since, most);
        // The caller ignores the result, so the reason is reported here, once.
        const std::string problem =
            deleted.ok() || IsAway(deleted.error()) ? "" : deleted.error().message;
        if (std::exchange(trim_problem_, problem) != problem && !problem.empty()) {
          Report("cannot delete old entries of the audit log", problem);
        }
        return deleted;
      },
      std::move(done));
}

PolicyHealth SharedPolicyStore::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

void SharedPolicyStore::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait_until(lock, NextLook(),
                        [this] { return stopping_ || woken_ || !tasks_.empty(); });
    if (aborted_ || (stopping_ && tasks_.empty())) break;
    const std::deque<Task> tasks = std::exchange(tasks_, {});
    const bool woken = std::exchange(woken_, false);
    serving_ = !tasks.empty();
    lock.unlock();
    // A database that was down is tried again before callers get an error, but no caller waits for
    // two attempts.
    const bool told = !tasks.empty() && tasks.front().asked_at < looked_at_;
    if (woken || (!up_ && !told) || Clock::now() >= NextLook()) (void)Refresh();
    Serve(tasks);
    SaveWhenDue(/*now=*/false);
    lock.lock();
    serving_ = false;
    if (stopping_) served_.notify_one();
  }
  std::deque<Task> left = std::exchange(tasks_, {});
  lock.unlock();
  for (const Task& task : left) task.refuse({Code::kUnavailable, "the service is stopping"});
  SaveWhenDue(/*now=*/true);
}

SharedPolicyStore::Clock::time_point SharedPolicyStore::NextLook() const {
  const bool slow = up_ && ledger_->listening();
  const auto look = looked_at_ + (slow ? options_.slow_poll : options_.poll);
  return unsaved_ ? std::min(look, saved_at_ + kSaveEvery) : look;
}

void SharedPolicyStore::Serve(const std::deque<Task>& tasks) {
  for (const Task& task : tasks) {
    // After one call has found the database down, the others do not wait for it.
    if (up_) {
      task.run();
    } else {
      task.refuse(NotBegun(problem_));
    }
  }
  PutInForce();
}

void SharedPolicyStore::RunChange(const PolicyEdit& edit, Done done) {
  Result<Made> made = ledger_->Make(edit, catalog_);
  if (!made.ok()) {
    if (!IsAway(made.error())) return done(made.error());
    NoteHealth(made.error());
    return done(Away(made.error()));
  }
  const PolicyStep& step = made->step;
  if (step.after) {
    latest_.insert_or_assign(edit.key, *step.after);
  } else {
    latest_.erase(edit.key);
  }
  // If other changes came in between, everything is read before it is put in force.
  changes_ = made->changes == changes_ + 1 ? made->changes : -1;
  seen_ = std::max(seen_, made->changes);
  made_.emplace_back(std::move(done), step.after ? *step.after : *step.before);
}

/// Puts this node's changes in force, together with those of others, and answers.
void SharedPolicyStore::PutInForce() {
  if (made_.empty()) return;
  Status put;
  // If reading fails, this node's own changes apply all the same: they are committed.
  if (changes_ >= 0 || !Refresh().ok()) {
    put = in_force_.Put(latest_);
    NoteKnown();
  }
  for (auto& [done, result] : std::exchange(made_, {})) {
    if (!put.ok()) result = put.error();
    done(std::move(result));
  }
}

Status SharedPolicyStore::Refresh() {
  Status read = ReadIfChanged();
  NoteHealth(read);
  looked_at_ = Clock::now();
  return read;
}

Status SharedPolicyStore::ReadIfChanged() {
  if (!migrated_ && options_.migrate) {
    if (Status made = ledger_->Migrate(); !made.ok()) return made;
  }
  migrated_ = true;
  Result<std::int64_t> changes = ledger_->ReadChanges();
  if (!changes.ok()) return changes.error();
  // A server that was down may have been restored from a backup and changed since: the same count
  // may be of other changes.
  if (ledger_->lost()) {
    Report("the policy database has lost policies; restoring those that are missing");
    if (Status restored = ledger_->Restore(latest_); !restored.ok()) return restored;
  } else if (*changes == changes_ && up_) {
    return {};
  }
  Result<Snapshot> snapshot = ledger_->ReadAll();
  if (!snapshot.ok()) return snapshot.error();
  if (snapshot->changes < seen_) {
    Report("the policy database has gone back to an older state; policies are as they were then",
           DifferenceInWords(latest_, seen_, *snapshot));
  }
  if (Status put = in_force_.Put(snapshot->policies); !put.ok()) return put;
  ledger_->Accept();
  seen_ = snapshot->changes;
  latest_ = std::move(snapshot->policies);
  changes_ = snapshot->changes;
  NoteKnown();
  return {};
}

void SharedPolicyStore::NoteKnown() {
  unsaved_ = options_.memory != nullptr;
  const std::lock_guard lock(mutex_);
  health_.known = true;
  health_.change = std::max<std::int64_t>(changes_, 0);
}

void SharedPolicyStore::NoteHealth(const Status& status) {
  const bool first = looked_at_ == Clock::time_point();
  const bool was_up = std::exchange(up_, status.ok());
  if (!status.ok()) problem_ = status.error();
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    known = health_.known;
    health_.up = up_;
    if (!up_) health_.last_error = problem_.message;
  }
  // The first result is for Start to report, which may end the service.
  if (first || was_up == up_) return;
  if (up_) return Report("the policy database is back");
  Report(known ? "the policy database is down; the last known policies stay in force"
               : "the policy database is down",
         problem_.message);
}

void SharedPolicyStore::SaveWhenDue(bool now) {
  if (!unsaved_ || (!now && Clock::now() < saved_at_ + kSaveEvery)) return;
  saved_at_ = Clock::now();
  unsaved_ = false;
  if (Status saved = options_.memory->Save(latest_, ledger_->mark()); !saved.ok()) {
    Report("cannot save policies for a restart without the policy database", saved.error().message);
  }
}

}  // namespace weir::policy::shared
