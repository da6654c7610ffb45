#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "notify/message.h"
#include "notify/notify.h"
#include "weir/result.h"

namespace weir::notify {

/// An answered send and its idempotency key.
struct KeyedSend {
  std::string user_id;
  std::string key;
  std::int64_t digest = 0;  ///< of the message
  SendAnswer answer;
};

/// Sends that were counted elsewhere, to be added to the window that began at `window_start`.
struct CountDelta {
  std::string user_id;
  Micros window_start = 0;
  std::int64_t sends = 0;
};

/// What a cache in front of the table of limits needs from it.
///
/// Thread-safe. Callbacks run on a thread of the store, once, within a bounded time.
class LimitStore {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~LimitStore() = default;

  /// The users' rows without a lock, in the order of `users`. Windows that have ended at `now` are
  /// restarted first (count 0), unless another caller just did so.
  virtual void Load(std::vector<std::string> users, Micros now,
                    Done<std::vector<std::optional<UserLimit>>> done) = 0;

  /// Adds to windows that are still those of the rows; others have ended and need no count. In the
  /// same transaction, stores the sends under their keys and records the messages as accepted.
  virtual void Add(std::vector<CountDelta> deltas, std::vector<KeyedSend> keyed,
                   std::vector<Accepted> accepted, std::function<void(Status)> done) = 0;

  /// The send that is stored under a key.
  virtual void FindKey(std::string user_id, std::string key, Micros now,
                       Done<std::optional<KeyedSend>> done) = 0;
};

}  // namespace weir::notify
