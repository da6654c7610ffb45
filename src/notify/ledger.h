#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "notify/message.h"
#include "notify/notify.h"
#include "notify/preferences.h"
#include "weir/result.h"

namespace weir::notify {

/// Dead letters, oldest first.
struct DeadQuery {
  std::string user_id = {};  ///< empty: any
  std::size_t limit = 100;
  Micros after_time = -1;  ///< after this one, the last of the previous page
  std::string after_id = {};
  bool events_only = false;  ///< excludes messages that were not events and cannot be replayed
};

/// Everything known about messages and users except the counts: states, dead letters, preferences.
///
/// Thread-safe. Callbacks run on a thread of the ledger, once, within a bounded time, or before
/// the call returns; they must not block. kUnavailable: the database is down.
class Ledger {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Ledger() = default;

  virtual void Find(std::string event_id, Done<std::optional<Message>> done) = 0;
  /// query.limit is at most kMaxPage.
  virtual void List(MessageQuery query, Done<std::vector<Message>> done) = 0;

  virtual void ListDead(DeadQuery query, Done<std::vector<DeadMessage>> done) = 0;
  virtual void FindDead(std::string event_id, Done<std::optional<DeadMessage>> done) = 0;
  /// Puts dead letters back into the queue; returns the IDs of those put back. At most
  /// kMaxDeadBatch ids.
  virtual void Replay(std::vector<std::string> event_ids, Done<std::vector<std::string>> done) = 0;
  /// Deletes dead letters; their messages are dropped. Returns the IDs of those that existed.
  virtual void Drop(std::vector<std::string> event_ids, Done<std::vector<std::string>> done) = 0;

  /// Users with a limit, ordered by ID, after `after`.
  virtual void ListUsers(std::string after, std::size_t limit,
                         Done<std::vector<UserLimit>> done) = 0;

  /// Creates or replaces (CheckPreferences must hold).
  virtual void PutPreferences(Preferences preferences, Done<Preferences> done) = 0;
  /// nullopt: the user has set none.
  virtual void FindPreferences(std::string user_id, Done<std::optional<Preferences>> done) = 0;
};

}  // namespace weir::notify
