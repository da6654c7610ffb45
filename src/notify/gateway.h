#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "notify/notify.h"
#include "weir/result.h"

namespace weir::notify {

/// Users' limits, and sending under them. Every gateway follows these rules:
///
/// - In one window a user gets at most rate_limit sends; a window begins with the first send after
///   the previous one has ended, and with Configure.
/// - kSent means that the event is confirmed: no event with this answer is lost.
/// - A repeated request with an idempotency key gets the same answer again and is not counted.
/// - Requests of one user are decided in the order of their Send calls.
///
/// Thread-safe: any thread may call any function. Callbacks run on a thread of the gateway, once,
/// within a bounded time, or before the call returns; they must not block. kUnavailable names
/// the part that is down.
class Gateway {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Gateway() = default;

  /// Creates or replaces the user's limit (CheckLimit must hold). The count starts at 0 and the
  /// window now. Returns the row as stored.
  virtual void Configure(UserLimit limit, Done<UserLimit> done) = 0;

  /// Like Configure, but a current window continues: it keeps its start and its count.
  virtual void Adjust(UserLimit limit, Done<UserLimit> done) = 0;

  /// Creates the user's limit if there is none (CheckLimit must hold). True: it was created.
  virtual void Ensure(UserLimit limit, Done<bool> done) = 0;

  /// Removes the user's limit: sends are answered kUnknownUser from now on. False: there was
  /// none.
  virtual void Remove(std::string user_id, Done<bool> done) = 0;

  /// CheckSend must hold.
  virtual void Send(SendRequest request, Done<SendAnswer> done) = 0;

  /// The user's row with its current count; nullopt if there is none.
  virtual void Find(std::string user_id, Done<std::optional<UserLimit>> done) = 0;

  /// Requests waiting for an answer, for metrics.
  virtual std::size_t waiting() const = 0;
};

}  // namespace weir::notify
