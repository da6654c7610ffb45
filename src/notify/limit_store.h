#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "notify/message.h"
#include "notify/notify.h"
#include "weir/result.h"

namespace weir::notify {

/// A send that was answered, under its idempotency key.
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

/// What a cache in front of the table of limits needs of it.
///
/// Thread-safe. Callbacks run on a thread of the store, once, within a bounded time.
class LimitStore {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~LimitStore() = default;

  /// The users' rows without a lock, in the order of `users`. Windows that are over at `now` are
  /// started again first (count 0), unless someone else just did.
  virtual void Load(std::vector<std::string> users, Micros now,
                    Done<std::vector<std::optional<UserLimit>>> done) = 0;

  /// Adds to windows that are still the row's; others are over and need no count any more. Together
  /// with it, sends are remembered under their keys, and the messages are written down as accepted.
  virtual void Add(std::vector<CountDelta> deltas, std::vector<KeyedSend> keyed,
                   std::vector<Accepted> accepted, std::function<void(Status)> done) = 0;

  /// The send that is remembered under a key.
  virtual void FindKey(std::string user_id, std::string key, Micros now,
                       Done<std::optional<KeyedSend>> done) = 0;
};

}  // namespace weir::notify
