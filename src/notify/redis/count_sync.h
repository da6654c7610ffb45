#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "notify/limit_store.h"

namespace weir::notify::redis {

/// Copies the counts in Redis to the table: collects confirmed sends and adds them, many
/// users at a time, one call in flight. Always knows what the table is missing.
///
/// Thread safety: for one thread; the owner ensures that Synced is called there.
class CountSync {
 public:
  /// Passes a batch to the store; Synced must be called with the outcome.
  using Add =
      std::function<void(std::vector<CountDelta>, std::vector<KeyedSend>, std::vector<Accepted>)>;

  explicit CountSync(Add add) : add_(std::move(add)) {}

  /// A place was taken in Redis; the outcome is not known yet.
  void Begin(const std::string& user_id) { ++unsynced_[user_id]; }
  /// The send was confirmed: it will be added.
  void Confirm(const std::string& user_id, Micros window_start);
  /// The send failed. Redis keeps it counted, but the table never will.
  void Fail(const std::string& user_id) { Forget(user_id, 1); }
  void Remember(KeyedSend send) { keyed_.push_back(std::move(send)); }
  void Accept(Accepted message) { accepted_.push_back(std::move(message)); }

  /// Starts a call if there is something to add and no call is in progress.
  void Flush();
  /// The outcome of the call; after an error its batch waits for the next Flush.
  void Synced(bool ok);

  bool idle() const noexcept {
    return unsynced_.empty() && keyed_.empty() && accepted_.empty() && !calling_;
  }
  bool calling() const noexcept { return calling_; }
  bool HasUnsynced(const std::string& user_id) const { return unsynced_.contains(user_id); }
  std::size_t users() const noexcept { return unsynced_.size(); }
  /// Confirmed sends that the table does not know yet.
  std::size_t messages() const noexcept { return accepted_.size() + sent_accepted_.size(); }

 private:
  void Forget(const std::string& user_id, std::int64_t sends);

  const Add add_;
  std::map<std::pair<std::string, Micros>, std::int64_t> pending_;  // by user and window
  std::vector<KeyedSend> keyed_;
  std::vector<Accepted> accepted_;
  std::vector<CountDelta> sent_;  // the batch of the call
  std::vector<KeyedSend> sent_keyed_;
  std::vector<Accepted> sent_accepted_;
  bool calling_ = false;
  std::unordered_map<std::string, std::int64_t> unsynced_;
};

}  // namespace weir::notify::redis
