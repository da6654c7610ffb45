#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "admin/audit_json.h"
#include "admin/undoable.h"

namespace weir::admin {

/// Changes of configuration other than policies. Each is written to the audit log with the state
/// before and after, so that it can be undone; changes of one object are made one after the other.
/// A change that cannot be written to the log is reverted immediately, except for a count that it
/// set to 0; the answer says so.
///
/// Thread-safe, except for Add. The log must outlive the last change; all other arguments must
/// live until Close.
class ConfigChanges {
 public:
  explicit ConfigChanges(AuditLog& audit) : audit_(audit) {}

  /// Call before the service starts.
  void Add(Undoable undoable);

  /// Wraps `handler` so that a log entry is written before each success response to a request that
  /// is not GET or HEAD. `kind` must have been added.
  http::Handler Audited(std::string_view kind, http::Handler handler);

  /// Whether an entry with this target is of a kind that was added.
  bool Knows(std::string_view target) const {
    return Find(target.substr(0, target.find(':'))) != nullptr;
  }

  /// Reverts a change and returns the state now. kFailedPrecondition if its target was changed
  /// since (see CheckTurn), or is of an unknown kind.
  void Undo(const AuditEntry& entry, std::string who,
            const Undoable::Done<Result<Undoable::State>>& done);

  /// Stops calling handlers and undoables; a change that needs one ends with kUnavailable.
  /// Only the owner may call it, before the objects that are changed are destroyed.
  void Close();

 private:
  struct Change;
  using ChangePtr = std::shared_ptr<Change>;

  const Undoable* Find(std::string_view kind) const;
  /// Runs `task` when no other change of `target` is in progress; End marks its end.
  void Begin(const std::string& target, std::function<void()> task);
  void End(const std::string& target);
  /// Makes a call to something that lives only until Close; returns false after Close.
  bool Call(const std::function<void()>& call);
  void Read(const ChangePtr& change, const Undoable::Done<Result<Undoable::State>>& done);
  void Restore(const ChangePtr& change, const Undoable::State& wanted,
               const Undoable::Done<Status>& done);
  void Answer(const ChangePtr& change, Status outcome);
  void Made(const ChangePtr& change);
  void Write(const ChangePtr& change);
  void TakeBack(const ChangePtr& change, const Error& why);
  /// Restores `wanted` if the state is still `expected`; empty: the object does not exist.
  void TakeBackLatest(const ChangePtr& change, const std::string& wanted,
                      const std::string& expected);

  AuditLog& audit_;
  std::vector<std::unique_ptr<Undoable>> kinds_;

  std::mutex mutex_;
  /// Tasks that wait for a change of the same target to end.
  std::unordered_map<std::string, std::deque<std::function<void()>>> waiting_;
  bool closed_ = false;
  std::size_t calls_ = 0;  // in progress
  std::condition_variable called_;
};

}  // namespace weir::admin
