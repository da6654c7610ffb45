#pragma once

// Policies in a database, SQL or Redis, that many nodes share. One thread per node talks to it:
// makes the changes, reads the histories, and reads all policies again whenever the count of
// changes has moved, which PostgreSQL announces and which is polled four times a second elsewhere.
// Checks use what was read last, so they never wait for the database and keep working when it
// is down.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "admin/in_force.h"
#include "admin/policy_store.h"
#include "admin/shared/ledger.h"
#include "policy/catalog.h"

namespace weir::policy::shared {

/// Where a node saves the policies that it read last, for a start while the database is down.
///
/// Not thread-safe.
class Memory {
 public:
  virtual ~Memory() = default;
  struct Known {
    PolicyMap policies = {};
    std::string mark = {};  ///< Ledger::mark
  };
  /// kNotFound: none of this database are saved.
  virtual Result<Known> Load() = 0;
  virtual Status Save(const PolicyMap& policies, const std::string& mark) = 0;
};

struct Options {
  bool migrate = true;    ///< create or update the tables
  bool required = false;  ///< do not open without the database
  /// Between polls of the count of changes: if the server announces them, and if it does not.
  std::chrono::milliseconds slow_poll{5000};
  std::chrono::milliseconds poll{250};
  /// Timeout of a statement; after it the server counts as down. Whole seconds for MariaDB.
  std::chrono::milliseconds patience{5000};
  /// For calls that are still pending when the store is closed.
  std::chrono::milliseconds at_end{2000};
  std::unique_ptr<Memory> memory = nullptr;  ///< null: none
  /// For the log: what has happened, and the reason if it is a problem. Called by Open and on the
  /// store's thread.
  std::function<void(std::string_view what, const std::string& problem)> report = {};
};

/// PolicyStore on a Ledger.
///
/// Thread-safe. Close processes pending calls, such as the last entries of the audit log, for
/// up to Options::at_end; then calls that still wait fail with kUnavailable.
class SharedPolicyStore final : public StoreInForce {
 public:
  /// Reads the policies and puts them in force: those of the database or, if it is down, those of
  /// the memory, or none (health().known is then false until it is back). Blocks for seconds at
  /// most. The catalog must outlive the store.
  static Result<std::unique_ptr<PolicyStore>> Open(std::unique_ptr<Ledger> ledger, Catalog& catalog,
                                                   Options options);
  ~SharedPolicyStore() override;
  SharedPolicyStore(const SharedPolicyStore&) = delete;
  SharedPolicyStore& operator=(const SharedPolicyStore&) = delete;

  void Change(PolicyEdit edit, Done done) override;
  void History(std::string key, std::size_t limit, HistoryDone done) override;
  void ListEntries(AuditQuery query, Listed done) override;
  void FindEntry(std::int64_t id, Found done) override;
  void Append(AuditEntry entry, Appended done) override;
  void Trim(std::size_t keep, Nanos since, std::size_t most, Trimmed done) override;
  PolicyHealth health() const override;
  void Close() override;

 private:
  using Clock = std::chrono::steady_clock;

  /// A call to the database, or its refusal.
  struct Task {
    std::function<void()> run;
    std::function<void(const Error&)> refuse;
    Clock::time_point asked_at = Clock::now();
  };

  SharedPolicyStore(std::unique_ptr<Ledger> ledger, Catalog& catalog, Options options);
  Status Start();
  Error WithAdvice(Error error) const;
  Status Remember();
  void Report(std::string_view what, const std::string& problem = {}) const;
  template <typename T>
  void Submit(std::function<Result<T>()> run, std::function<void(Result<T>)> done);
  void Post(Task task);
  void Wake();
  void Work();
  void Serve(const std::deque<Task>& tasks);
  void RunChange(const PolicyEdit& edit, Done done);
  void PutInForce();
  Status Refresh();
  Status ReadIfChanged();
  void NoteHealth(const Status& status);
  void NoteKnown();
  void SaveWhenDue(bool now);
  Clock::time_point NextLook() const;

  Catalog& catalog_;
  Options options_;

  // Used on the store's thread only.
  PolicyMap latest_;
  std::int64_t changes_ = -1;  // that led to latest_; -1: unknown
  std::int64_t seen_ = 0;      // the latest that was known
  bool migrated_ = false;
  bool up_ = false;
  Error problem_;
  std::vector<std::pair<Done, Result<StoredPolicy>>> made_;  // not in force yet
  bool unsaved_ = false;
  Clock::time_point looked_at_{};
  Clock::time_point saved_at_{};
  std::string trim_problem_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable served_;
  std::deque<Task> tasks_;
  bool woken_ = false;
  bool stopping_ = false;  // accepts no more tasks, runs those it has
  bool aborted_ = false;
  bool serving_ = false;  // the thread has taken tasks and not finished them
  PolicyHealth health_;

  std::unique_ptr<Ledger> ledger_;
  std::thread thread_;
};

}  // namespace weir::policy::shared
