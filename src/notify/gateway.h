#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "notify/notify.h"
#include "weir/result.h"

namespace weir::notify {

/// Users' limits, and sending under them. Every gateway keeps these rules:
///
/// - In one window a user gets at most rate_limit sends; a window begins with the first send after
///   the one before is over, and with Configure.
/// - kSent means that the event is confirmed: nothing that was answered so is lost.
/// - A request with an idempotency key that was sent before is answered as then and not counted.
/// - Requests of one user are decided in the order of their Send calls.
///
/// Thread-safe: any thread may call anything. Callbacks run on a thread of the gateway, once,
/// within a bounded time, maybe before the call returns; they must not block. kUnavailable names
/// the part that is down.
class Gateway {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Gateway() = default;

  /// Makes or replaces the user's limit (CheckLimit must hold). The count starts at 0 and the
  /// window now. Answers the row as stored.
  virtual void Configure(UserLimit limit, Done<UserLimit> done) = 0;

  /// As Configure, but a window that is there goes on: it keeps its start and what it has counted.
  virtual void Adjust(UserLimit limit, Done<UserLimit> done) = 0;

  /// Makes the user's limit unless there is one (CheckLimit must hold). True: it made one.
  virtual void Ensure(UserLimit limit, Done<bool> done) = 0;

  /// Removes the user's limit: sends are answered kUnknownUser from now on. False: there was
  /// none.
  virtual void Remove(std::string user_id, Done<bool> done) = 0;

  /// CheckSend must hold.
  virtual void Send(SendRequest request, Done<SendAnswer> done) = 0;

  /// The user's row as it is counted just now. Nothing: there is none.
  virtual void Find(std::string user_id, Done<std::optional<UserLimit>> done) = 0;

  /// Requests that wait for an answer, for metrics.
  virtual std::size_t waiting() const = 0;
};

}  // namespace weir::notify
