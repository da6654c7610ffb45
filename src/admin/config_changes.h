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
/// A change that cannot be written to the log is reverted at once, except for a count that it set
/// to 0; the answer says so.
///
/// Thread-safe but for Add. The log must outlive the last change; all else that was given must
/// live until Close.
class ConfigChanges {
 public:
  explicit ConfigChanges(AuditLog& audit) : audit_(audit) {}

  /// Before the service starts.
  void Add(Undoable undoable);

  /// The handler, with an entry of the log before each answer of success to a request that is not
  /// GET or HEAD. `kind` was added.
  http::Handler Audited(std::string_view kind, http::Handler handler);

  /// Whether an entry with this target is of a kind that was added.
  bool Knows(std::string_view target) const {
    return Find(target.substr(0, target.find(':'))) != nullptr;
  }

  /// Reverts a change and returns the state now. kFailedPrecondition if its target was changed
  /// since (see CheckTurn), or is of a kind that is not known here.
  void Undo(const AuditEntry& entry, std::string who,
            const Undoable::Done<Result<Undoable::State>>& done);

  /// No handler and no undoable is called any more; a change that needs one ends with kUnavailable.
  /// For the owner, before the things that are changed are destroyed.
  void Close();

 private:
  struct Change;
  using ChangePtr = std::shared_ptr<Change>;

  const Undoable* Find(std::string_view kind) const;
  /// Runs `task` when no other change of `target` is in progress; End marks its end.
  void Begin(const std::string& target, std::function<void()> task);
  void End(const std::string& target);
  /// Makes a call of what lives only until Close; false: it does not any more.
  bool Call(const std::function<void()>& call);
  void Read(const ChangePtr& change, const Undoable::Done<Result<Undoable::State>>& done);
  void Restore(const ChangePtr& change, const Undoable::State& wanted,
               const Undoable::Done<Status>& done);
  void Answer(const ChangePtr& change, Status outcome);
  void Made(const ChangePtr& change);
  void Write(const ChangePtr& change);
  void TakeBack(const ChangePtr& change, const Error& why);
  /// Makes it `wanted` if it is still `expected`; both empty: nothing.
  void TakeBackLatest(const ChangePtr& change, const std::string& wanted,
                      const std::string& expected);

  AuditLog& audit_;
  std::vector<std::unique_ptr<Undoable>> kinds_;

  std::mutex mutex_;
  /// What waits for the change of a target that is under way.
  std::unordered_map<std::string, std::deque<std::function<void()>>> waiting_;
  bool closed_ = false;
  std::size_t calls_ = 0;  // under way
  std::condition_variable called_;
};

}  // namespace weir::admin
